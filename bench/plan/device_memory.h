#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "bench/plan/compile.h"
#include "runtime/variables.h"

namespace cnn::bench {

struct Backend;
struct RankContext;

// All device memory of a run: its variables, staged inputs of its steps, and behind them one arena
// that is reused in sequence by the steps of its programs, their prologues, and transfers of
// variables between steps. Known before any allocation.
struct DeviceMemory {
  std::size_t variables = 0;       // on the device
  std::size_t host_variables = 0;  // bytes of variables on the host
  std::size_t staged = 0;          // staged batches of real data, of each program that takes them
  std::size_t arena = 0;
  std::size_t arena_lower_bound = 0;  // for any placement
  // Pinned host bytes: the variables there, and the swapped activations of the largest program.
  std::size_t host = 0;

  std::size_t total() const { return variables + staged + arena; }
  std::size_t lower_bound() const { return variables + staged + arena_lower_bound; }
};

// The programs of a mode: a main program, an evaluation, or both with one set of variables.
struct Programs {
  std::optional<Compiled> main, evaluation;  // at least one

  Variables variables() const;
};

// Returns the inputs of a graph that are copied to the device ahead of their step, as indices in
// graph.inputs(): images and labels of real data if the device has its own memory; else none.
std::vector<std::size_t> staged_inputs(const Graph& graph, const Backend& backend);
// Returns the device bytes of these inputs.
std::size_t staged_bytes(const Graph& graph, const Backend& backend);

// Throws Error if no kernel of the backend can bring a variable to the device.
DeviceMemory device_memory(const Programs& programs, const RankContext& context);

// Returns the device bytes that the evaluation needs, with all variables and staged inputs; 0:
// there is none. memory: of the programs.
std::size_t evaluation_bytes(const Programs& programs, const DeviceMemory& memory);

// Returns whether device and host memory suffice. A device that computes in host memory has only
// one kind.
bool fits(const DeviceMemory& memory, const RankContext& context);
// Returns the bytes left for swapped activations.
std::size_t host_bytes_left(const DeviceMemory& memory, const RankContext& context);

}  // namespace cnn::bench
