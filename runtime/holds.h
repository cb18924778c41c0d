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

// From which step on each step of another lane is known to have finished.
class Meetings {
 public:
  // Adds what a step knows; steps come in their order.
  void add(std::size_t at, const LaneSteps& known);
  // The first of them that knows `step` of that lane; `never` if none does.
  std::size_t first(std::size_t lane, std::int64_t step, std::size_t never) const;

 private:
  // For each lane: what is known, and since which step; both rise.
  std::array<std::vector<std::pair<std::int64_t, std::size_t>>, lane_count> met_;
};

// How long bytes are kept for whom they served. A step of another lane than compute may be late: a
// compute step that took bytes which it touched would have to wait for it. So they are kept until
// the first compute step that waits for it anyway, for data or because the caller says so; else to
// the end of the schedule.
//
// But an Offload is there to free bytes: unless it is the last departure of an output, it ends the
// stay where it stands, or at the step that the caller lets wait for it or for a later step of its
// lane, where that does not come behind its return.
class Holds {
 public:
  // The schedule may have waits of the caller. Throws Error if one is not for an earlier step.
  Holds(const Graph& graph, const Schedule& schedule);

  // The last step in which no other may take the bytes: of a stay, and of a step's workspace.
  StepId of(const Residency& stay) const;
  StepId of_workspace(StepId step) const;
  // Whether the step that touches the stay last may write its result there: if it is a compute
  // step, only where it need not wait for that.
  bool may_take_over(const Residency& stay) const;

 private:
  void find_swaps(const Graph& graph);
  std::size_t end(std::size_t last, const LaneSteps& touched) const;

  const std::vector<Step>& steps_;
  std::vector<LaneSteps> known_;  // by StepId: finished before it starts, whatever lies where
  Meetings met_, asked_;          // by compute steps, in any way; by any, since the caller says so
  // By StepId, for an Offload that ends a stay where it stands: the next Fetch of the tensor, or
  // the number of steps.
  std::vector<std::optional<std::size_t>> back_;
};

}  // namespace cnn
