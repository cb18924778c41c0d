#pragma once

#include <cstdint>
#include <cudnn.h>
#include <span>
#include <string>
#include <vector>

#include "tests/support/cuda/dnn/graph.h"

// The engines of the emulation. All compute the same; they differ in what the heuristics, the notes
// and the workspace say of them, so that every way of choosing one is taken.
namespace cnn::tests::emulated::dnn {

struct Engine {
  std::int64_t index = 0;
  std::vector<cudnnBackendNumericalNote_t> numerical;
  std::vector<cudnnBackendBehaviorNote_t> behaviour;
  std::int64_t workspace = 0;
  bool tensor_cores = false;  // f32 factors are rounded to TF32
};

std::span<const Engine> engines();
// Throws DnnError if there is none with that index.
const Engine& engine_at(std::int64_t index);

// Returns what an engine on Hopper cannot run of the graph; empty if it can.
std::string why_unsupported(const Engine& engine, const Graph& graph);

// Says why an engine refuses to run its plan, empty if it runs: the engine that
// CNN_EMULATED_REFUSING_ENGINE names refuses every plan.
std::string why_refused(const Engine& engine);

// Whether engines wait for their stream, which no capture takes: where CNN_EMULATED_WAITING_ENGINES
// is set.
bool engines_wait();

// Indices of engines for the graph, the fastest first. Empty: the mode knows of none.
std::vector<std::int64_t> propose(const Graph& graph, cudnnBackendHeurMode_t mode);

}  // namespace cnn::tests::emulated::dnn
