#include "lms/edit.h"

#include <string>
#include <utility>

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
        before_(schedule.steps.size()),
        behind_(schedule.steps.size()),
        out_behind_(schedule.steps.size()),
        freed_by_(schedule.steps.size()),
        moved_(schedule.steps.size(), nowhere),
        offload_(decisions.size(), nowhere) {
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
        offload(std::get<Swap>(decisions_[d]), d);
      }
      for (const std::size_t d : behind_[s]) {
        fetch(std::get<Swap>(decisions_[d]));
      }
    }
    return std::move(edited_);
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
      push({.action = Compute{std::get<Recompute>(decision).node}});
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
    moved_[s] = push(std::move(step));
  }

  void offload(const Swap& swap, std::size_t d) {
    offload_[d] = push({.action = Offload{swap.tensor}, .lane = Lane::copy_out});
    if (waits_for_out(sync_)) {
      held_up_by_ = offload_[d];
    }
  }

  void fetch(const Swap& swap) {
    Step step{.action = Fetch{swap.tensor}, .lane = Lane::copy_in};
    if (waits_for_in(sync_)) {
      if (last_compute_ != nowhere) {
        step.after.push_back(last_compute_);
      }
    } else if (swap.not_before) {
      step.after.push_back(moved_[index_of(*swap.not_before)]);
    }
    push(std::move(step));
  }

  StepId push(Step step) {
    const StepId id{static_cast<std::uint32_t>(edited_.steps.size())};
    if (step.lane == Lane::compute) {
      if (held_up_by_ != nowhere) {
        step.after.push_back(std::exchange(held_up_by_, nowhere));
      }
      last_compute_ = id;
    }
    edited_.steps.push_back(std::move(step));
    return id;
  }

  const Schedule& schedule_;
  std::span<const Decision> decisions_;
  SyncMode sync_;
  Places before_, behind_, out_behind_, freed_by_;
  std::vector<StepId> moved_;    // by StepId: where the step is now
  std::vector<StepId> offload_;  // by decision
  StepId held_up_by_ = nowhere;  // an Offload that the next compute step waits for
  StepId last_compute_ = nowhere;
  Schedule edited_;
};

}  // namespace

Schedule edit(const Schedule& schedule, std::span<const Decision> decisions, SyncMode sync) {
  return Editor(schedule, decisions, sync).edit();
}

}  // namespace cnn::lms
