#pragma once

#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "lms/options.h"
#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// A tensor leaves the device and comes back. Steps are those of the schedule that is edited.
struct Swap {
  TensorId tensor{};
  StepId out_behind{};   // the last step that uses it before it leaves
  StepId back_before{};  // the first that needs it again
  std::optional<StepId>
      not_before;  // a trigger: the copy back starts when this step has ended, and
                   // its bytes are taken from there on; nothing: from back_before
  // The step that waits for its departure: until then its bytes are kept. Nothing: whoever takes
  // them first waits.
  std::optional<StepId> free_before;
  // The host has it from an earlier departure: it goes without a copy out, and comes back again.
  bool on_host = false;
};

// A node runs again in front of a step.
struct Recompute {
  NodeId node{};
  StepId before{};
};
using Decision = std::variant<Swap, Recompute>;

// The schedule with the copies and repetitions that were decided on, in the order of the decisions
// where several come to one place: first what is fetched for a trigger, then the rest. Throws Error
// if a step does not exist or a tensor would come back before it leaves.
Schedule edit(const Schedule& schedule, std::span<const Decision> decisions,
              SyncMode sync = SyncMode::none);

}  // namespace cnn::lms
