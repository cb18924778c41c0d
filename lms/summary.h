#pragma once

#include <cstddef>
#include <vector>

#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// The work of a schedule beyond the step without a plan: swap-outs and swap-ins of activations, and
// recomputations.
struct Summary {
  std::size_t swapped_tensors = 0;  // that leave at least once
  std::size_t swap_outs = 0, swap_ins = 0;
  std::size_t bytes_out = 0, bytes_in = 0;
  // Those of them that go on from the host to the disk, and come back from there.
  std::size_t stored_tensors = 0;
  std::size_t bytes_stored = 0, bytes_loaded = 0;
  std::size_t recomputed = 0;  // steps that run a node again
  bool moves() const { return swap_outs > 0 || recomputed > 0; }
};

// Returns whether copies of this tensor belong to a plan: inputs arrive and outputs leave without
// one.
bool may_move(const Graph& graph, TensorId tensor);

// Returns, by StepId, whether it runs a node that an earlier step has run.
std::vector<bool> runs_again(const Graph& graph, const Schedule& schedule);

// Returns the nodes of a schedule in the order of their first runs.
std::vector<NodeId> first_runs(const Graph& graph, const Schedule& schedule);

// Returns, by TensorId, whether it is away from the device between two of its uses: swapped out, or
// dropped and recomputed. A part of another tensor is away with the whole.
std::vector<bool> leaves_device(const Graph& graph, const Schedule& schedule);

Summary summarize(const Graph& graph, const Schedule& schedule);

}  // namespace cnn::lms
