#pragma once

#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "lms/options.h"
#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// A tensor leaves the device and returns. Step ids refer to the schedule before the edit.
struct Swap {
  TensorId tensor{};
  StepId out_behind{};   // the last step that uses it before it leaves
  StepId back_before{};  // the first that needs it again
  // A trigger: the copy back starts when this step has ended, and its bytes are reserved from there
  // on. Nothing: from back_before.
  std::optional<StepId> not_before;
  // The step that waits for the copy out; its bytes stay reserved until then. Nothing: the first
  // step that reuses the bytes waits.
  std::optional<StepId> free_before;
  // The host has a copy from an earlier swap: the tensor leaves without a copy out, and returns
  // again.
  bool on_host = false;
};

// A node runs again before a step.
struct Recompute {
  NodeId node{};
  StepId before{};
};
using Decision = std::variant<Swap, Recompute>;

// Returns the schedule with the decided copies and recomputations. At one place they follow the
// order of the decisions, but fetches with a trigger come first. Throws Error if a step does not
// exist or a tensor would return before it leaves.
Schedule edit(const Schedule& schedule, std::span<const Decision> decisions,
              SyncMode sync = SyncMode::none);

}  // namespace cnn::lms
