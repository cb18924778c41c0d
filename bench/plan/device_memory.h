#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "bench/plan/compile.h"
#include "runtime/variables.h"

namespace cnn::bench {

struct Backend;
struct RankContext;

// Every byte that a run takes of its device: its variables, what is staged for its steps, and
// behind them one arena in which all that it does takes turns: the steps of its programs, their
// prologues, and between steps the transfers of variables. Known before anything is allocated.
struct DeviceMemory {
  std::size_t variables = 0;
  std::size_t staged = 0;  // batches of real data on their way, of each program that takes them
  std::size_t arena = 0;
  std::size_t arena_lower_bound = 0;  // of any placement
  std::size_t host = 0;               // of swapped activations, pinned; of the largest program

  std::size_t total() const { return variables + staged + arena; }
  std::size_t lower_bound() const { return variables + staged + arena_lower_bound; }
};

// The programs of a mode: a main program, an evaluation, or both over one set of variables.
struct Programs {
  std::optional<Compiled> main, evaluation;  // at least one

  Variables variables() const;
};

// The inputs of a graph that go to the device ahead of their step, as places in graph.inputs(): the
// images and labels of real data where the device has memory of its own; else none.
std::vector<std::size_t> staged_inputs(const Graph& graph, const Backend& backend);
// Returns the bytes of the device for these inputs.
std::size_t staged_bytes(const Graph& graph, const Backend& backend);

// Throws Error if no kernel of the backend brings a variable to the device.
DeviceMemory device_memory(const Programs& programs, const RankContext& context);

// Whether both kinds of memory suffice. A device that computes in the host's memory has one.
bool fits(const DeviceMemory& memory, const RankContext& context);
// Returns the bytes that are left for swapped activations.
std::size_t host_bytes_left(const DeviceMemory& memory, const RankContext& context);

}  // namespace cnn::bench
