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
  // Adds the clock of a step at its start; steps come in their order.
  void add(std::size_t at, const VectorClock& known);
  // Returns the first added step that runs after `step` of that lane; `never` if none does.
  std::size_t first(std::size_t lane, std::int64_t step, std::size_t never) const;

 private:
  // For each lane: its component of the clock, and the first step that has it; both rise.
  std::array<std::vector<std::pair<std::int64_t, std::size_t>>, lane_count> met_;
};

// How long a block of the arena is reserved for a live interval, beyond the last step that touches
// it. A step of another lane than compute may run late: a compute step that reused the bytes would
// have to wait for it. So the block stays reserved until the first compute step that waits for it
// anyway, for data or because the caller says so; else to the end of the schedule.
//
// An Offload frees bytes at once: unless it is the last one of an output, the reservation ends with
// it, or at the step that the caller lets wait for it or for a later step of its lane, if that
// comes before the Fetch of the tensor.
class BlockLifetimes {
 public:
  // The schedule may have waits of the caller. Throws Error if one is not for an earlier step.
  BlockLifetimes(const Graph& graph, const Schedule& schedule);

  // Returns the last step in which the bytes of the interval are reserved.
  StepId of(const LiveInterval& interval) const;
  // Returns the same of the workspace of a step.
  StepId of_workspace(StepId step) const;
  // Returns whether the last step that touches the interval may write its result in place: a
  // compute step may if it waits for no step of another lane for that.
  bool may_take_over(const LiveInterval& interval) const;

 private:
  void find_swaps(const Graph& graph);
  std::size_t end(std::size_t last, const VectorClock& touched) const;

  const std::vector<Step>& steps_;
  std::vector<VectorClock> known_;  // by StepId: its clock at its start, wherever data lies
  SyncPoints met_;                  // of compute steps
  SyncPoints asked_;                // of all steps, by the waits of the caller alone
  // The next Fetch of the tensor for each Offload that ends a reservation, by StepId; the number of
  // steps where there is none.
  std::vector<std::optional<std::size_t>> back_;
};

}  // namespace cnn
