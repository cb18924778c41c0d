#include "lms/edit.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lms/schedule_writer.h"
#include "runtime/error.h"

namespace cnn::lms {
namespace {

constexpr StepId nowhere{~std::uint32_t{0}};

class Editor {
 public:
  Editor(const Schedule& schedule, std::span<const Decision> decisions, SyncMode sync)
      : schedule_(schedule),
        decisions_(decisions),
        sync_(sync),
        writer_(sync),
        before_(schedule.steps.size()),
        behind_(schedule.steps.size()),
        out_behind_(schedule.steps.size()),
        freed_by_(schedule.steps.size()),
        moved_(schedule.steps.size(), nowhere),
        offload_(decisions.size(), nowhere) {
    for (const Step& step : schedule.steps) {
      if (const auto* compute = std::get_if<Compute>(&step.action)) {
        lane_.resize(std::max(lane_.size(), index_of(compute->node) + 1), Lane::compute);
        lane_[index_of(compute->node)] = step.lane;
      }
    }
    for (std::size_t d = 0; d < decisions.size(); ++d) {
      if (const auto* swap = std::get_if<Swap>(&decisions[d])) {
        place(*swap, d);
      } else {
        at(before_, std::get<Recompute>(decisions[d]).before).push_back(d);
      }
    }
  }

  Schedule edit() {
    for (std::size_t s = 0; s < schedule_.steps.size(); ++s) {
      for (const std::size_t d : before_[s]) {
        add(decisions_[d]);
      }
      copy_step(s);
      for (const std::size_t d : out_behind_[s]) {
        offload_[d] = writer_.offload(std::get<Swap>(decisions_[d]).tensor);
      }
      for (const std::size_t d : behind_[s]) {
        fetch(std::get<Swap>(decisions_[d]));
      }
    }
    return writer_.take();
  }

 private:
  using Places = std::vector<std::vector<std::size_t>>;  // by StepId: decisions

  std::vector<std::size_t>& at(Places& places, StepId step) const {
    if (index_of(step) >= places.size()) {
      throw Error("the schedule has no step " + std::to_string(index_of(step)));
    }
    return places[index_of(step)];
  }

  void place(const Swap& swap, std::size_t d) {
    const StepId first = swap.not_before.value_or(swap.out_behind);
    if (swap.back_before <= swap.out_behind || first < swap.out_behind ||
        swap.back_before <= first) {
      throw Error("a tensor cannot return before step " +
                  std::to_string(index_of(swap.back_before)) + " when it leaves behind step " +
                  std::to_string(index_of(swap.out_behind)));
    }
    if (!swap.on_host) {
      at(out_behind_, swap.out_behind).push_back(d);
    }
    const bool early = swap.not_before && !waits_for_in(sync_);
    early ? at(behind_, *swap.not_before).push_back(d) : at(before_, swap.back_before).push_back(d);
    if (swap.free_before && !swap.on_host) {
      check(*swap.free_before > swap.out_behind, "a tensor is free only behind its departure");
      at(freed_by_, *swap.free_before).push_back(d);
    }
  }

  void add(const Decision& decision) {
    if (const auto* swap = std::get_if<Swap>(&decision)) {
      fetch(*swap);
    } else {
      const NodeId node = std::get<Recompute>(decision).node;
      const std::size_t n = index_of(node);
      writer_.add({.action = Compute{node}, .lane = n < lane_.size() ? lane_[n] : Lane::compute});
    }
  }

  void copy_step(std::size_t s) {
    Step step = schedule_.steps[s];
    for (StepId& wait : step.after) {
      wait = moved_.at(index_of(wait));
    }
    for (const std::size_t d : freed_by_[s]) {
      step.after.push_back(offload_[d]);
    }
    moved_[s] = writer_.add(std::move(step));
  }

  void fetch(const Swap& swap) {
    std::vector<StepId> after;
    if (swap.not_before && !waits_for_in(sync_)) {
      after.push_back(moved_[index_of(*swap.not_before)]);
    }
    writer_.fetch(swap.tensor, std::move(after));
  }

  const Schedule& schedule_;
  std::span<const Decision> decisions_;
  SyncMode sync_;
  ScheduleWriter writer_;
  Places before_, behind_, out_behind_, freed_by_;
  std::vector<Lane> lane_;       // by NodeId
  std::vector<StepId> moved_;    // by StepId: the step's new id
  std::vector<StepId> offload_;  // by decision
};

}  // namespace

Schedule edit(const Schedule& schedule, std::span<const Decision> decisions, SyncMode sync) {
  return Editor(schedule, decisions, sync).edit();
}

}  // namespace cnn::lms
