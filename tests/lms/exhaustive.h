#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "lms/expanded_schedule.h"
#include "lms/planning_problem.h"
#include "lms/policy.h"

namespace cnn::tests {

// Brute-force reference for the search: tries every decision on every tensor and every order of
// swap-ins among the compute steps, and keeps the shortest step. It counts bytes without addresses,
// so a schedule that fits here may not fit once it is placed. The time is exponential in the number
// of tensors.
class Exhaustive {
 public:
  explicit Exhaustive(const lms::Request& request)
      : problem_(lms::planning_problem(request)),
        expander_(problem_),
        budget_(static_cast<double>(request.budget.device)),
        decisions_(problem_.roots.size(), lms::TensorDecision::keep),
        swaps_(request.budget.host > 0),
        drops_(request.options.recompute != lms::Recomputation::off) {
    for (std::uint32_t r = 0; r < problem_.roots.size(); ++r) {
      if (problem_.roots[r].may_leave) {
        movable_.push_back(r);
      }
    }
  }

  std::size_t movable() const { return movable_.size(); }
  double seconds() {
    choose(0);
    return best_;
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  struct Change {
    double at = 0, bytes = 0;
  };
  struct State {
    std::vector<Change> changes;       // sorted by time
    std::vector<double> ends;          // end time of each step
    std::vector<double> swap_in_ends;  // by live interval
    double out = 0, in = 0, compute = 0;
    std::size_t returned = 0;
  };

  void choose(std::size_t at) {
    using lms::TensorDecision;
    if (at == movable_.size()) {
      expanded_ = &expander_.expand(decisions_);
      find_copies();
      run({.changes = {},
           .ends = {},
           .swap_in_ends = std::vector<double>(expanded_->intervals.size())},
          0);
      return;
    }
    for (const TensorDecision decision :
         {TensorDecision::keep, TensorDecision::swap, TensorDecision::drop,
          TensorDecision::drop_often, TensorDecision::swap_often, TensorDecision::drop_early}) {
      const lms::Root& root = problem_.roots[movable_[at]];
      if ((!lms::is_swapped(decision) || swaps_) &&
          (!lms::is_dropped(decision) || (drops_ && root.may_drop)) &&
          (decision != TensorDecision::drop_early || root.early)) {
        decisions_[movable_[at]] = decision;
        choose(at + 1);
      }
    }
    decisions_[movable_[at]] = TensorDecision::keep;
  }

  void find_copies() {
    swap_ins_.clear();
    swap_out_ends_.assign(problem_.roots.size(), 0);
    for (std::uint32_t s = 0; s < expanded_->intervals.size(); ++s) {
      if (expanded_->intervals[s].returns) {
        swap_ins_.push_back(s);
      }
    }
  }

  double bytes(const lms::LiveInterval& interval) const {
    return static_cast<double>(problem_.roots[interval.root].bytes);
  }

  // Returns the earliest time, not before `ready`, from which `more` additional bytes always fit.
  double earliest_fit(const State& state, double more, double ready) const {
    double held = more;
    for (const Change& change : state.changes) {
      held += change.bytes;
    }
    if (held > budget_) {
      return never;
    }
    for (std::size_t c = state.changes.size(); c-- > 0;) {
      held -= state.changes[c].bytes;
      if (held > budget_) {
        return std::max(ready, state.changes[c].at);
      }
      if (state.changes[c].at <= ready) {
        return ready;
      }
    }
    return ready;
  }

  static void change(State& state, double at, double bytes) {
    const auto place = std::ranges::upper_bound(state.changes, at, {}, &Change::at);
    state.changes.insert(place, {at, bytes});
  }

  // Branches over the number of swap-ins issued before each compute step.
  void run(State state, std::uint32_t step) {
    if (step == expanded_->steps.size()) {
      best_ = std::min(best_, std::max({state.compute, state.out, state.in}));
      return;
    }
    for (;;) {
      const bool all = state.returned == swap_ins_.size();
      if (all || expanded_->intervals[swap_ins_[state.returned]].first > step) {
        State next = state;
        if (compute(next, step)) {
          run(std::move(next), step + 1);
        }
      }
      if (all || step < expanded_->backward || !bring_back(state)) {
        return;
      }
    }
  }

  bool bring_back(State& state) {
    const std::uint32_t index = swap_ins_[state.returned++];
    const lms::LiveInterval& interval = expanded_->intervals[index];
    const double start =
        earliest_fit(state, bytes(interval), std::max(state.in, swap_out_ends_[interval.root]));
    if (start == never) {
      return false;
    }
    change(state, start, bytes(interval));
    const double rate = problem_.in_bytes_per_second;
    state.in = state.swap_in_ends[index] = start + (rate > 0 ? bytes(interval) / rate : 0);
    return true;
  }

  bool compute(State& state, std::uint32_t step) {
    const lms::ExpandedStep& one = expanded_->steps[step];
    const bool computes = one.kind == lms::StepKind::compute;
    double more = computes ? static_cast<double>(problem_.nodes[one.id].workspace) : 0;
    double ready = state.compute, less = more;
    for (const lms::InPlaceReuse& taken : expanded_->reused_in_place) {
      more -= taken.step == step ? static_cast<double>(taken.bytes) : 0;
      less -= taken.step == step ? static_cast<double>(taken.bytes) : 0;
    }
    for (std::uint32_t s = 0; s < expanded_->intervals.size(); ++s) {
      const lms::LiveInterval& interval = expanded_->intervals[s];
      more += interval.first == step && !interval.returns ? bytes(interval) : 0;
      less += interval.last == step && !interval.leaves ? bytes(interval) : 0;
      ready = interval.first == step && interval.returns ? std::max(ready, state.swap_in_ends[s])
                                                         : ready;
    }
    const double start = earliest_fit(state, more, ready);
    const double seconds = computes ? problem_.nodes[one.id].seconds : 0;
    if (start + seconds >= best_) {
      return false;
    }
    change(state, start, more);
    state.compute = start + seconds;
    state.ends.push_back(state.compute);
    change(state, state.compute, -less);
    depart(state, step);
    return true;
  }

  void depart(State& state, std::uint32_t step) {
    for (const lms::LiveInterval& interval : expanded_->intervals) {
      if (interval.leaves && interval.last == step) {
        const double rate = problem_.out_bytes_per_second;
        state.out = std::max(state.out, state.ends[interval.written]) +
                    (rate > 0 ? bytes(interval) / rate : 0);
        swap_out_ends_[interval.root] = state.out;
        change(state, std::max(state.out, state.compute), -bytes(interval));
      }
    }
  }

  lms::PlanningProblem problem_;
  lms::ScheduleExpander expander_;
  const lms::ExpandedSchedule* expanded_ = nullptr;
  double budget_;
  lms::TensorDecisions decisions_;
  bool swaps_, drops_;
  std::vector<std::uint32_t> movable_;   // roots that may leave
  std::vector<std::uint32_t> swap_ins_;  // live intervals that begin with one, by first use
  std::vector<double> swap_out_ends_;    // end of each root's swap-out, equal for all orders
  double best_ = never;
};

}  // namespace cnn::tests
