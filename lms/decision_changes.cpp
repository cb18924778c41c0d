#include "lms/decision_changes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "lms/articulation_points.h"

namespace cnn::lms {
namespace {

// Roots of one pass can only leave always, and those that cannot leave within a pass leave once.
TensorDecision adapted(TensorDecision decision, const Root& root) {
  if (decision == TensorDecision::keep || root.may_leave == root.may_leave_often) {
    return decision;
  }
  if (root.may_leave_often) {
    return is_swapped(decision) ? TensorDecision::swap_always : TensorDecision::drop_always;
  }
  return !leaves_always(decision) ? decision
         : is_swapped(decision)   ? TensorDecision::swap
                                  : TensorDecision::drop;
}

}  // namespace

DecisionChanges::DecisionChanges(const PlanningProblem& problem, const Limits& limits)
    : problem_(problem),
      swaps_(limits.swaps),
      drops_(limits.drops),
      is_movable_(problem.roots.size()) {
  for (std::uint32_t r = 0; r < problem.roots.size(); ++r) {
    const Root& root = problem.roots[r];
    const bool is_fixed = !limits.fixed.empty() && limits.fixed[r] != 0;
    if (!is_fixed && (root.may_leave || root.may_leave_often) &&
        ((swaps_ && root.may_swap) || (drops_ && root.may_drop))) {
      movable_.push_back(r);
      is_movable_[r] = 1;
      within_pass_ = within_pass_ || root.may_leave_often;
    }
  }
  std::ranges::copy_if(
      lms::articulation_points(problem), std::back_inserter(articulation_points_),
      [&](std::uint32_t r) { return drops_ && is_movable(r) && problem.roots[r].may_drop; });
}

void DecisionChanges::set(TensorDecisions& decisions, std::uint32_t root,
                          TensorDecision decision) const {
  if ((is_dropped(decision) && (!drops_ || !problem_.roots[root].may_drop)) ||
      (is_swapped(decision) && (!swaps_ || !problem_.roots[root].may_swap))) {
    decision = TensorDecision::keep;
  }
  decision = adapted(decision, problem_.roots[root]);
  if (decision == TensorDecision::drop_early && !problem_.roots[root].early) {
    decision = TensorDecision::drop;
  }
  if (decision == TensorDecision::swap_often && !problem_.roots[root].used_apart) {
    decision = TensorDecision::swap;
  }
  decisions[root] = decision;
}

TensorDecisions DecisionChanges::with_sources(TensorDecisions decisions, std::uint32_t root,
                                              TensorDecision how) const {
  set(decisions, root, how);
  std::vector<std::uint32_t> open{root}, seen;
  while (!open.empty()) {
    const std::uint32_t made = open.back();
    open.pop_back();
    for (const std::uint32_t maker : problem_.roots[made].makers) {
      for (const std::uint32_t source : problem_.nodes[maker].reads) {
        if ((decisions[source] == TensorDecision::drop ||
             decisions[source] == TensorDecision::drop_often) &&
            std::ranges::find(seen, source) == seen.end()) {
          set(decisions, source, TensorDecision::drop_often);
          open.push_back(source);
          seen.push_back(source);
        }
      }
    }
  }
  return decisions;
}

TensorDecisions DecisionChanges::exchanged(TensorDecisions decisions) {
  constexpr std::size_t checkpoints = 8;  // one change in so many
  if (articulation_points_.size() > 1 && random_.next() % checkpoints == 0) {
    return with_other_checkpoints(std::move(decisions));
  }
  constexpr std::size_t all = 20, exchanges = 8, others = 2;
  const std::size_t kind = random_.next() % all;
  const std::uint32_t moved = any(decisions, true);
  if (kind < exchanges) {
    const TensorDecision decision = decisions[any(decisions, true)];
    set(decisions, any(decisions, false), decision);
    decisions[moved] = TensorDecision::keep;
  } else if (kind < exchanges + others) {
    set(decisions, moved, random_.next() % 2 == 0 ? TensorDecision::keep : any_decision());
  } else {
    return changed(std::move(decisions));
  }
  return decisions;
}

// Moves a checkpoint to its neighbour, adds or removes one, or changes how the tensors of some
// blocks are recomputed: each of their changes alone would be worse.
TensorDecisions DecisionChanges::with_other_checkpoints(TensorDecisions decisions) {
  constexpr std::size_t kinds = 3, most_blocks = 4;
  const std::vector<std::uint32_t>& points = articulation_points_;
  const std::size_t kind = random_.next() % kinds;
  const std::size_t at = random_.next() % (points.size() - 1);
  const std::uint32_t root = points[at], next = points[at + 1];
  if (kind == 0) {
    const TensorDecision moved = decisions[root];
    set(decisions, root, decisions[next]);
    set(decisions, next, moved);
  } else if (kind == 1) {
    const TensorDecision left =
        random_.next() % 2 == 0 ? TensorDecision::keep : TensorDecision::swap;
    set(decisions, root, is_dropped(decisions[root]) ? left : TensorDecision::drop);
  } else {
    const TensorDecision how =
        random_.next() % 2 == 0 ? TensorDecision::drop : TensorDecision::drop_often;
    const std::size_t end = std::min(at + 1 + random_.next() % most_blocks, points.size() - 1);
    for (std::size_t block = at; block < end; ++block) {
      for (std::uint32_t r = points[block] + 1; r < points[block + 1]; ++r) {
        if (is_movable(r) && is_dropped(decisions[r])) {
          set(decisions, r, how);
        }
      }
    }
  }
  return decisions;
}

// Returns a random root that moves, or one that is kept; if there is none, any root.
std::uint32_t DecisionChanges::any(const TensorDecisions& decisions, bool moves) {
  const auto matches = [&](std::uint32_t r) {
    return (decisions[r] != TensorDecision::keep) == moves;
  };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(movable_, matches));
  std::size_t left = random_.next() % (count > 0 ? count : movable_.size());
  for (const std::uint32_t r : movable_) {
    if ((count == 0 || matches(r)) && left-- == 0) {
      return r;
    }
  }
  return movable_.front();
}

TensorDecisions DecisionChanges::changed(TensorDecisions decisions) {
  constexpr std::array<std::size_t, 10> lengths{1, 1, 1, 1, 2, 2, 3, 4, 6, 9};
  const std::size_t at = random_.next() % movable_.size();
  const std::size_t length = lengths[random_.next() % lengths.size()];
  const std::size_t stride = 1 + (length > 1 ? random_.next() % 2 : 0);
  const TensorDecision decision = any_decision();
  for (std::size_t i = 0; i < length && at + i * stride < movable_.size(); ++i) {
    set(decisions, movable_[at + i * stride], decision);
  }
  if (random_.next() % 3 == 0) {  // and another in the opposite direction
    set(decisions, movable_[random_.next() % movable_.size()], any_decision());
  }
  return decisions;
}

TensorDecision DecisionChanges::any_decision() {
  constexpr std::array<TensorDecision, 7> all{
      TensorDecision::keep,        TensorDecision::drop,       TensorDecision::drop_often,
      TensorDecision::swap,        TensorDecision::swap_often,  // between the passes
      TensorDecision::drop_always, TensorDecision::swap_always};
  constexpr std::size_t between_passes = 5;
  return all[random_.next() % (within_pass_ ? all.size() : between_passes)];
}

}  // namespace cnn::lms
