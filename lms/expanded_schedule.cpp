#include "lms/expanded_schedule.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/error.h"

namespace cnn::lms {

ScheduleExpander::ScheduleExpander(const PlanningProblem& problem)
    : problem_(problem), interval_(problem.roots.size(), -1), away_(problem.roots.size()) {
  flatten();
  run_forward();
  forward_ = result_;
  forward_interval_ = interval_;
  forward_candidates_ = candidates_.size();
}

void ScheduleExpander::flatten() {
  const auto here = [this] {
    return Node{.reads = static_cast<std::uint32_t>(lists_.size()),
                .may_reuse = static_cast<std::uint32_t>(pairs_.size())};
  };
  for (const ProblemNode& node : problem_.nodes) {
    Node flat = here();
    flat.seconds = node.seconds;
    flat.writes = flat.reads + static_cast<std::uint32_t>(node.reads.size());
    lists_.insert(lists_.end(), node.reads.begin(), node.reads.end());
    lists_.insert(lists_.end(), node.writes.begin(), node.writes.end());
    pairs_.insert(pairs_.end(), node.may_reuse.begin(), node.may_reuse.end());
    nodes_.push_back(flat);
  }
  nodes_.push_back(here());
  for (const Root& root : problem_.roots) {
    has_parts_.push_back(root.makers.size() > 1);
  }
}

std::span<const std::uint32_t> ScheduleExpander::reads(std::uint32_t node) const {
  return {lists_.data() + nodes_[node].reads, lists_.data() + nodes_[node].writes};
}
std::span<const std::uint32_t> ScheduleExpander::writes(std::uint32_t node) const {
  return {lists_.data() + nodes_[node].writes, lists_.data() + nodes_[node + 1].reads};
}
std::span<const ProblemNode::InPlaceReuse> ScheduleExpander::may_reuse(std::uint32_t node) const {
  return {pairs_.data() + nodes_[node].may_reuse, pairs_.data() + nodes_[node + 1].may_reuse};
}

void ScheduleExpander::run_forward() {
  for (given_ = 0; given_ < problem_.backward && given_ < problem_.steps.size(); ++given_) {
    add_given();
    leave_within_pass();
  }
  result_.backward = result_.steps.size();
}

void ScheduleExpander::start_anew() {
  result_.steps.clear();
  result_.intervals.clear();
  result_.seconds = 0;
  candidates_.clear();
  std::ranges::fill(interval_, -1);
}

const ExpandedSchedule& ScheduleExpander::expand(const TensorDecisions& decisions) {
  decisions_ = &decisions;
  result_.reused_in_place.clear();
  borrowed_.clear();
  returned_.clear();
  present_.clear();
  std::ranges::fill(away_, 0);
  const bool has_other_forward =
      std::exchange(within_pass_, std::ranges::any_of(decisions, leaves_always));
  if (within_pass_) {
    start_anew();
    run_forward();
  } else {
    has_other_forward ? void(result_.steps = forward_.steps)
                      : result_.steps.resize(forward_.steps.size());
    result_.intervals = forward_.intervals;
    result_.seconds = forward_.seconds;
    result_.backward = forward_.backward;
    candidates_.resize(forward_candidates_);
    interval_ = forward_interval_;
  }
  leave_forward();
  for (given_ = static_cast<std::uint32_t>(problem_.backward); given_ < problem_.steps.size();
       ++given_) {
    add_given();
    release();
    leave_within_pass();
  }
  keep_outputs();
  resolve_in_place_reuse();
  return result_;
}

void ScheduleExpander::add_given() {
  const ProblemStep& step = problem_.steps[given_];
  switch (step.kind) {
    case StepKind::compute:
      for (const std::uint32_t root : reads(step.id)) {
        require(root);
      }
      run(step.id, false);
      return;
    case StepKind::fetch:
      if (interval_[step.id] < 0) {
        begin(step.id, false);
      }
      break;
    case StepKind::offload:
      require(step.id);
      result_.intervals[static_cast<std::size_t>(interval_[step.id])].last =
          static_cast<std::uint32_t>(result_.steps.size());
      break;
  }
  result_.steps.push_back({step.kind, step.id, given_, false});
}

void ScheduleExpander::run(std::uint32_t node, bool again) {
  const auto step = static_cast<std::uint32_t>(result_.steps.size());
  for (const std::uint32_t root : reads(node)) {
    const std::int32_t interval = interval_[root];
    check(interval >= 0, "tensors of which each needs a part of the other would be made again");
    result_.intervals[static_cast<std::size_t>(interval)].last = step;
  }
  const std::span<const ProblemNode::InPlaceReuse> pairs = may_reuse(node);
  const std::size_t from = candidates_.size();
  for (const ProblemNode::InPlaceReuse& pair : pairs) {
    candidates_.push_back({step, static_cast<std::uint32_t>(interval_[pair.from]), 0});
  }
  for (const std::uint32_t root : writes(node)) {
    // A part joins existing parts, but an existing output is rewritten in other bytes.
    const bool joins = has_parts_[root] && interval_[root] >= 0;
    if (!joins) {
      begin(root, false);
    }
    LiveInterval& interval = result_.intervals[static_cast<std::size_t>(interval_[root])];
    interval.last = interval.written = step;
  }
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    candidates_[from + p].to = static_cast<std::uint32_t>(interval_[pairs[p].to]);
  }
  result_.steps.push_back({StepKind::compute, node, given_, again});
  result_.seconds += nodes_[node].seconds;
}

void ScheduleExpander::begin(std::uint32_t root, bool returns) {
  const auto step = static_cast<std::uint32_t>(result_.steps.size());
  interval_[root] = static_cast<std::int32_t>(result_.intervals.size());
  result_.intervals.push_back({.root = root,
                               .first = step,
                               .last = step,
                               .written = step,
                               .earliest = away_[root],
                               .returns = returns});
  if (within_pass_ && leaves_always((*decisions_)[root])) {
    present_.push_back(root);
  }
}

void ScheduleExpander::require(std::uint32_t root) {
  if (interval_[root] >= 0) {
    return;
  }
  if (away_[root] != 0) {
    begin(root, true);
    if ((*decisions_)[root] == TensorDecision::swap_often) {
      returned_.push_back(root);
    }
    return;
  }
  if (problem_.roots[root].is_input) {
    begin(root, false);
    result_.steps.push_back({StepKind::fetch, root, given_, true});
    return;
  }
  repeat_makers(root);
}

// Other nodes may need parts of a root between its makers: those find it started, and recompute
// what was requested before it. So a root may exist once its sources do.
void ScheduleExpander::repeat_makers(std::uint32_t root) {
  bool begun = false;
  for (const std::uint32_t maker : problem_.roots[root].makers) {
    check(problem_.nodes[maker].may_repeat, "a node that may not run again would have to");
    for (const std::uint32_t source : reads(maker)) {
      const bool was_there = interval_[source] >= 0;
      require(source);
      if (!was_there && (*decisions_)[source] == TensorDecision::drop_often && source != root) {
        borrowed_.push_back(source);
      }
    }
    if (!begun && interval_[root] >= 0) {
      return;
    }
    begun = true;
    run(maker, true);
  }
}

// A root that is not kept ends with its last use so far; uses in the backward pass begin a new
// interval.
void ScheduleExpander::leave_forward() {
  for (std::uint32_t r = 0; r < interval_.size(); ++r) {
    if (interval_[r] < 0 || leaves_always((*decisions_)[r])) {
      continue;
    }
    const Root& root = problem_.roots[r];
    if (is_swapped((*decisions_)[r])) {
      leave(r);
    } else if ((*decisions_)[r] != TensorDecision::keep || !root.needed_backward) {
      interval_[r] = -1;
    }
  }
}

// Takes a root off the device behind its last step. The host keeps what was copied out once.
void ScheduleExpander::leave(std::uint32_t root) {
  LiveInterval& interval = result_.intervals[static_cast<std::size_t>(interval_[root])];
  if (is_swapped((*decisions_)[root])) {
    interval.leaves = away_[root] == 0;
    away_[root] = interval.last + 1;
  }
  interval_[root] = -1;
}

// Roots that leave always do so unless a given step reads them soon. A swapped one that nothing
// given reads any more is not copied out; a recomputation that needs it lengthens its interval.
void ScheduleExpander::leave_within_pass() {
  if (!within_pass_) {
    return;
  }
  std::erase_if(present_, [this](std::uint32_t r) {
    const Root& root = problem_.roots[r];
    if (given_ < root.written || is_read_soon(r)) {
      return false;
    }
    const bool is_read = !root.uses.empty() && root.uses.back() > given_;
    if (interval_[r] >= 0 && (is_read || away_[r] != 0 || is_dropped((*decisions_)[r]))) {
      leave(r);
    }
    return true;
  });
}

// Returns whether one of the next given steps reads the root: it would return at once.
bool ScheduleExpander::is_read_soon(std::uint32_t root) const {
  constexpr std::uint32_t soon = 4;
  const std::vector<std::uint32_t>& uses = problem_.roots[root].uses;
  const auto next = std::ranges::upper_bound(uses, given_);
  return next != uses.end() && *next <= given_ + soon;
}

void ScheduleExpander::release() {
  for (const std::uint32_t root : borrowed_) {
    if (interval_[root] >= 0) {
      interval_[root] = -1;
    }
  }
  borrowed_.clear();
  std::erase_if(returned_, [&](std::uint32_t root) {
    if (is_read_next(root)) {
      return false;
    }
    // The host still has it: a later reader has it copied back again.
    away_[root] = result_.intervals[static_cast<std::size_t>(interval_[root])].last + 1;
    interval_[root] = -1;
    return true;
  });
}

// Returns whether the next given node reads the root.
bool ScheduleExpander::is_read_next(std::uint32_t root) const {
  const std::vector<std::uint32_t>& uses = problem_.roots[root].backward_uses;
  const auto next = std::ranges::upper_bound(uses, given_);
  return next != uses.end() &&
         std::all_of(problem_.steps.begin() + given_ + 1, problem_.steps.begin() + *next,
                     [](const ProblemStep& step) { return step.kind != StepKind::compute; });
}

// No compute step waits for the copy of an output, so that its bytes stay until the end.
void ScheduleExpander::keep_outputs() {
  for (const ProblemStep& step : problem_.steps) {
    if (step.kind == StepKind::offload && interval_[step.id] >= 0) {
      result_.intervals[static_cast<std::size_t>(interval_[step.id])].last =
          static_cast<std::uint32_t>(result_.steps.size()) - 1;
    }
  }
}

void ScheduleExpander::resolve_in_place_reuse() {
  given_away_.assign(result_.intervals.size(), 0);
  settled_.assign(result_.intervals.size(), 0);
  for (const Candidate& candidate : candidates_) {
    const LiveInterval& from = result_.intervals[candidate.from];
    const LiveInterval& to = result_.intervals[candidate.to];
    if (from.last == candidate.step && !from.leaves && to.first == candidate.step &&
        given_away_[candidate.from] == 0 && settled_[candidate.to] == 0) {
      result_.reused_in_place.push_back(
          {.step = candidate.step, .bytes = problem_.roots[to.root].bytes, .from = from.root});
      given_away_[candidate.from] = settled_[candidate.to] = 1;
    }
  }
}

}  // namespace cnn::lms
