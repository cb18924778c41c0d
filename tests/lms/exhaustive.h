#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "lms/outline.h"
#include "lms/policy.h"
#include "lms/unroll.h"

namespace cnn::tests {

// The shortest step of all ways to treat each tensor and to order copies back among the compute
// steps. Bytes are taken and given back as time goes by, wherever they lie: what fits here need not
// fit when it is placed. For a handful of tensors.
class Exhaustive {
 public:
  explicit Exhaustive(const lms::Request& request)
      : outline_(lms::outline(request)),
        unroller_(outline_),
        budget_(static_cast<double>(request.budget.device)),
        fates_(outline_.roots.size(), lms::Fate::keep),
        swaps_(request.budget.host > 0),
        drops_(request.options.recompute != lms::Recomputation::off) {
    for (std::uint32_t r = 0; r < outline_.roots.size(); ++r) {
      if (outline_.roots[r].may_leave) {
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
    std::vector<Change> changes;  // by time
    std::vector<double> ends;     // by step
    std::vector<double> there;    // by stay: when its copy back has ended
    double out = 0, in = 0, compute = 0;
    std::size_t returned = 0;
  };

  void choose(std::size_t at) {
    using lms::Fate;
    if (at == movable_.size()) {
      unrolled_ = &unroller_.unroll(fates_);
      find_copies();
      run({.changes = {}, .ends = {}, .there = std::vector<double>(unrolled_->stays.size())}, 0);
      return;
    }
    for (const Fate fate : {Fate::keep, Fate::swap, Fate::drop, Fate::drop_often}) {
      const bool drops = fate == Fate::drop || fate == Fate::drop_often;
      if ((fate != Fate::swap || swaps_) &&
          (!drops || (drops_ && outline_.roots[movable_[at]].may_drop))) {
        fates_[movable_[at]] = fate;
        choose(at + 1);
      }
    }
    fates_[movable_[at]] = Fate::keep;
  }

  void find_copies() {
    returns_.clear();
    departed_.assign(outline_.roots.size(), 0);
    for (std::uint32_t s = 0; s < unrolled_->stays.size(); ++s) {
      if (unrolled_->stays[s].returns) {
        returns_.push_back(s);
      }
    }
  }

  double bytes(const lms::Stay& stay) const {
    return static_cast<double>(outline_.roots[stay.root].bytes);
  }

  // From when on so many bytes more are free for good.
  double room(const State& state, double more, double ready) const {
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

  // Tries all numbers of copies back in front of each step.
  void run(State state, std::uint32_t step) {
    if (step == unrolled_->steps.size()) {
      best_ = std::min(best_, std::max({state.compute, state.out, state.in}));
      return;
    }
    for (;;) {
      const bool all = state.returned == returns_.size();
      if (all || unrolled_->stays[returns_[state.returned]].first > step) {
        State next = state;
        if (compute(next, step)) {
          run(std::move(next), step + 1);
        }
      }
      if (all || step < unrolled_->backward || !bring_back(state)) {
        return;
      }
    }
  }

  bool bring_back(State& state) {
    const std::uint32_t index = returns_[state.returned++];
    const lms::Stay& stay = unrolled_->stays[index];
    const double start = room(state, bytes(stay), std::max(state.in, departed_[stay.root]));
    if (start == never) {
      return false;
    }
    change(state, start, bytes(stay));
    const double rate = outline_.in_bytes_per_second;
    state.in = state.there[index] = start + (rate > 0 ? bytes(stay) / rate : 0);
    return true;
  }

  bool compute(State& state, std::uint32_t step) {
    const lms::UnrolledStep& one = unrolled_->steps[step];
    const bool computes = one.kind == lms::StepKind::compute;
    double more = computes ? static_cast<double>(outline_.nodes[one.id].workspace) : 0;
    double ready = state.compute, less = more;
    for (const lms::TakeOver& taken : unrolled_->taken_over) {
      more -= taken.step == step ? static_cast<double>(taken.bytes) : 0;
      less -= taken.step == step ? static_cast<double>(taken.bytes) : 0;
    }
    for (std::uint32_t s = 0; s < unrolled_->stays.size(); ++s) {
      const lms::Stay& stay = unrolled_->stays[s];
      more += stay.first == step && !stay.returns ? bytes(stay) : 0;
      less += stay.last == step && !stay.leaves ? bytes(stay) : 0;
      ready = stay.first == step && stay.returns ? std::max(ready, state.there[s]) : ready;
    }
    const double start = room(state, more, ready);
    const double seconds = computes ? outline_.nodes[one.id].seconds : 0;
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
    for (const lms::Stay& stay : unrolled_->stays) {
      if (stay.leaves && stay.last == step) {
        const double rate = outline_.out_bytes_per_second;
        state.out =
            std::max(state.out, state.ends[stay.written]) + (rate > 0 ? bytes(stay) / rate : 0);
        departed_[stay.root] = state.out;
        change(state, std::max(state.out, state.compute), -bytes(stay));
      }
    }
  }

  lms::Outline outline_;
  lms::Unroller unroller_;
  const lms::Unrolled* unrolled_ = nullptr;
  double budget_;
  lms::Fates fates_;
  bool swaps_, drops_;
  std::vector<std::uint32_t> movable_;  // roots
  std::vector<std::uint32_t> returns_;  // stays that come back, in the order of their use
  std::vector<double> departed_;        // by root: the forward pass is the same for all orders
  double best_ = never;
};

}  // namespace cnn::tests
