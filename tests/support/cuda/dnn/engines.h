#pragma once

#include <cstdint>
#include <cudnn.h>
#include <span>
#include <string>
#include <vector>

#include "tests/support/cuda/dnn/graph.h"

// The emulated cuDNN engines. All compute the same values but differ in heuristics, notes and
// workspace, so that tests cover every way of choosing an engine.
namespace cnn::tests::emulated::dnn {

struct Engine {
  std::int64_t index = 0;
  std::vector<cudnnBackendNumericalNote_t> numerical;
  std::vector<cudnnBackendBehaviorNote_t> behaviour;
  std::int64_t workspace = 0;
  bool tensor_cores = false;  // f32 factors are rounded to TF32
};

std::span<const Engine> engines();
// Throws DnnError if there is no engine with that index.
const Engine& engine_at(std::int64_t index);

// Returns why an engine on Hopper cannot run the graph, or "" if it can.
std::string why_unsupported(const Engine& engine, const Graph& graph);

// Returns why an engine refuses to run its plan, or "" if it runs. The engine that
// CNN_EMULATED_REFUSING_ENGINE names refuses every plan; "all": every engine does.
std::string why_refused(const Engine& engine);

// Returns whether engines wait for their stream, which a capture forbids.
// CNN_EMULATED_WAITING_ENGINES enables it.
bool engines_wait();

// Returns the indices of engines for the graph, the fastest first, or an empty list if the mode
// knows none.
std::vector<std::int64_t> propose(const Graph& graph, cudnnBackendHeurMode_t mode);

}  // namespace cnn::tests::emulated::dnn
