#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "lms/options.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// Writes a schedule step by step, with the waits of a sync mode.
class ScheduleWriter {
 public:
  explicit ScheduleWriter(SyncMode sync) : sync_(sync) {}

  StepId add(Step step) {
    const StepId id{static_cast<std::uint32_t>(schedule_.steps.size())};
    if (step.lane == Lane::compute) {
      if (held_up_by_) {
        step.after.push_back(*std::exchange(held_up_by_, std::nullopt));
      }
      last_compute_ = id;
    }
    schedule_.steps.push_back(std::move(step));
    return id;
  }

  StepId offload(TensorId tensor) {
    const StepId id = add({.action = Offload{tensor}, .lane = Lane::copy_out});
    if (waits_for_out(sync_)) {
      held_up_by_ = id;
    }
    return id;
  }

  StepId fetch(TensorId tensor, std::vector<StepId> after) {
    if (waits_for_in(sync_) && last_compute_) {
      after.push_back(*last_compute_);
    }
    return add({.action = Fetch{tensor}, .lane = Lane::copy_in, .after = std::move(after)});
  }

  Schedule take() { return std::move(schedule_); }

 private:
  SyncMode sync_;
  Schedule schedule_;
  std::optional<StepId> held_up_by_;  // an Offload for which the next compute step waits
  std::optional<StepId> last_compute_;
};

}  // namespace cnn::lms
