#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/graph.h"
#include "runtime/liveness.h"
#include "runtime/schedule.h"
#include "runtime/waits.h"

namespace cnn {

// The synchronisation points of a schedule: for each lane, the first of the added steps that runs
// after a given step of that lane has finished.
class SyncPoints {
 public:
  // Adds the clock of a step at its start; the caller adds steps in their order.
  void add(std::size_t at, const VectorClock& known);
  // Returns the first added step that runs after `step` of that lane; `never` if none does.
  std::size_t first(std::size_t lane, std::int64_t step, std::size_t never) const;

 private:
  // For each lane: its component of the clock, and the first step that has it; both increase.
  std::array<std::vector<std::pair<std::int64_t, std::size_t>>, lane_count> met_;
};

// The lifetimes of blocks: how long a block of the arena stays reserved for a live interval after
// the last step that touches it. A step of another lane than compute may run late: a compute step
// that reused the bytes would have to wait for it. So the block stays reserved until the first
// compute step that already waits for that step, for data or for a wait of the caller; else to the
// end of the schedule.
//
// An Offload frees the bytes early: unless it is the last Offload of an output, the reservation
// ends with the Offload, or at the step that a wait of the caller orders after the Offload or after
// a later step of its lane, if that step comes before the Fetch of the tensor.
class BlockLifetimes {
 public:
  // The schedule may contain waits of the caller. Throws Error if one is not for an earlier step.
  BlockLifetimes(const Graph& graph, const Schedule& schedule);

  // Returns the last step in which the bytes of the interval are reserved.
  StepId of(const LiveInterval& interval) const;
  // Returns the last step in which the bytes of the step's workspace are reserved.
  StepId of_workspace(StepId step) const;
  // Returns the last step in which the host bytes of a stored tensor are reserved: the Store, or
  // the step before the first one that waits for it by a wait of the caller, if that is not behind
  // its Load.
  StepId of_stored(StepId store) const;
  // Returns whether the last step that touches the interval may write its result in place: a
  // compute step may if it waits for no step of another lane for that.
  bool may_reuse_in_place(const LiveInterval& interval) const;

 private:
  void find_swaps(const Graph& graph);
  std::size_t end(std::size_t last, const VectorClock& touched) const;
  std::size_t asked_end(std::size_t last) const;

  const std::vector<Step>& steps_;
  // Indexed by StepId: the clock of each step at its start, from all data dependences.
  std::vector<VectorClock> known_;
  SyncPoints met_;    // of compute steps
  SyncPoints asked_;  // of all steps, from the caller's waits alone
  // For each Offload or Store that ends a reservation, by StepId: the next Fetch or Load of the
  // tensor, or the number of steps if there is none.
  std::vector<std::optional<std::size_t>> back_;
};

}  // namespace cnn
