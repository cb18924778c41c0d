#include "lms/expanded_schedule.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/error.h"

namespace cnn::lms {

namespace {

constexpr std::uint32_t never = ~std::uint32_t{0};

}  // namespace

ScheduleExpander::ScheduleExpander(const PlanningProblem& problem)
    : problem_(problem),
      backward_(static_cast<std::uint32_t>(std::min(problem.backward, problem.steps.size()))),
      base_(problem.roots.size(), TensorDecision::keep),
      begun_(problem.roots.size(), never),
      touched_(problem.roots.size(), never),
      interval_(problem.roots.size(), -1),
      away_(problem.roots.size()) {
  flatten();
  add_states();
  rebase(TensorDecisions(base_), 0);
}

void ScheduleExpander::flatten() {
  const auto here = [this] {
    return Node{.reads = static_cast<std::uint32_t>(lists_.size()),
                .may_reuse = static_cast<std::uint32_t>(pairs_.size())};
  };
  for (const ProblemNode& node : problem_.nodes) {
    Node flat = here();
    flat.seconds = node.seconds;
    flat.may_repeat = node.may_repeat;
    flat.writes = flat.reads + static_cast<std::uint32_t>(node.reads.size());
    lists_.insert(lists_.end(), node.reads.begin(), node.reads.end());
    lists_.insert(lists_.end(), node.writes.begin(), node.writes.end());
    pairs_.insert(pairs_.end(), node.may_reuse.begin(), node.may_reuse.end());
    nodes_.push_back(flat);
  }
  nodes_.push_back(here());
  early_.resize(problem_.steps.size());
  for (std::uint32_t r = 0; r < problem_.roots.size(); ++r) {
    const Root& root = problem_.roots[r];
    has_parts_.push_back(root.makers.size() > 1 ? 1 : 0);
    needed_backward_.push_back(root.needed_backward ? 1 : 0);
    is_input_.push_back(root.is_input ? 1 : 0);
    first_maker_.push_back(static_cast<std::uint32_t>(makers_.size()));
    makers_.insert(makers_.end(), root.makers.begin(), root.makers.end());
    if (root.early) {
      early_[*root.early].push_back(r);
    }
  }
  first_maker_.push_back(static_cast<std::uint32_t>(makers_.size()));
  for (const ProblemStep& step : problem_.steps) {
    if (step.kind == StepKind::offload) {
      offloaded_.push_back(step.id);
    }
  }
}

// Saves states before the first step and along the backward pass; along the forward pass only where
// roots may leave within it, since otherwise no decision acts there.
void ScheduleExpander::add_states() {
  constexpr std::uint32_t parts = 12;
  std::vector<std::uint32_t> at{0, backward_};
  const auto add = [&](std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t part = 1; part < parts; ++part) {
      at.push_back(first + (last - first) * part / parts);
    }
  };
  add(backward_, static_cast<std::uint32_t>(problem_.steps.size()));
  if (std::ranges::any_of(problem_.roots, &Root::may_leave_often)) {
    add(0, backward_);
  }
  std::ranges::sort(at);
  at.erase(std::unique(at.begin(), at.end()), at.end());
  for (const std::uint32_t given : at) {
    forward_state_ = given == backward_ ? states_.size() : forward_state_;
    State& state = states_.emplace_back();
    state.given = given;
    state.interval = interval_;
    state.away = away_;
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

const ExpandedSchedule& ScheduleExpander::expand(const TensorDecisions& decisions) {
  decisions_ = &decisions;
  const std::size_t point = resume_point(decisions);
  restore(states_[point]);
  run_from(point);
  keep_outputs();
  resolve_in_place_reuse();
  return result_;
}

void ScheduleExpander::rebase(const TensorDecisions& decisions) {
  rebase(decisions, resume_point(decisions));
}

// Expands again behind a saved state, and saves the later ones.
void ScheduleExpander::rebase(const TensorDecisions& decisions, std::size_t point) {
  decisions_ = &decisions;
  const auto forget = [&](std::uint32_t& step) {
    step = step >= states_[point].given ? never : step;
  };
  std::ranges::for_each(begun_, forget);
  std::ranges::for_each(touched_, forget);
  restore(states_[point]);
  leave_forward_in_states(point);
  is_recording_ = true;
  run_from(point);
  is_recording_ = false;
  base_ = decisions;
  base_steps_ = result_.steps;
  base_candidates_ = candidates_;
}

// Finds the differing decisions and returns the last saved state before any of them acts: a root
// that leaves always may do so once it has begun, and any other leaves between both passes, which
// nothing notices before a step consults it.
std::size_t ScheduleExpander::resume_point(const TensorDecisions& decisions) {
  differing_.clear();
  std::uint32_t first = never;
  constexpr std::size_t block = 64;  // compares most decisions by blocks
  for (std::size_t from = 0; from < decisions.size(); from += block) {
    const std::size_t count = std::min(block, decisions.size() - from);
    if (std::memcmp(&decisions[from], &base_[from], count) == 0) {
      continue;
    }
    for (std::size_t r = from; r < from + count; ++r) {
      if (decisions[r] != base_[r]) {
        const auto root = static_cast<std::uint32_t>(r);
        differing_.push_back(root);
        first =
            std::min(first, leaves_always(decisions[r]) || leaves_always(base_[r]) ? begun_[r]
                                                                                   : touched_[r]);
      }
    }
  }
  const auto after = std::ranges::upper_bound(states_, first, {}, &State::given);
  return static_cast<std::size_t>(after - states_.begin()) - 1;
}

void ScheduleExpander::restore(const State& state) {
  result_.steps.assign(base_steps_.begin(),
                       base_steps_.begin() + static_cast<std::ptrdiff_t>(state.steps));
  candidates_.assign(base_candidates_.begin(),
                     base_candidates_.begin() + static_cast<std::ptrdiff_t>(state.candidates));
  result_.intervals = state.intervals;
  result_.reused_in_place.clear();
  result_.seconds = state.seconds;
  result_.backward = state.backward;
  interval_ = state.interval;
  away_ = state.away;
  returned_ = state.returned;
  present_ = state.present;
  borrowed_.clear();
  if (state.given <= backward_) {
    return;
  }
  // Behind the forward pass nothing has consulted the differing roots yet: they leave anew.
  const State& forward = states_[forward_state_];
  for (const std::uint32_t root : differing_) {
    interval_[root] = forward.interval[root];
    away_[root] = forward.away[root];
    if (const std::int32_t interval = interval_[root]; interval >= 0) {
      const auto i = static_cast<std::size_t>(interval);
      result_.intervals[i] = forward.intervals[i];
      leave_forward(root);
    }
  }
}

// The saved states of the backward pass before `end`, where nothing has consulted the differing
// roots, get the restored state of these roots.
void ScheduleExpander::leave_forward_in_states(std::size_t end) {
  const State& forward = states_[forward_state_];
  for (std::size_t s = forward_state_ + 1; s < end; ++s) {
    for (const std::uint32_t root : differing_) {
      states_[s].interval[root] = interval_[root];
      states_[s].away[root] = away_[root];
      if (forward.interval[root] >= 0) {
        const auto i = static_cast<std::size_t>(forward.interval[root]);
        states_[s].intervals[i] = result_.intervals[i];
      }
    }
  }
}

void ScheduleExpander::save(State& state) const {
  state.steps = result_.steps.size();
  state.candidates = candidates_.size();
  state.backward = result_.backward;
  state.seconds = result_.seconds;
  state.intervals = result_.intervals;
  state.interval = interval_;
  state.away = away_;
  state.returned = returned_;
  state.present = present_;
}

// Expands the given steps behind a restored state.
void ScheduleExpander::run_from(std::size_t state) {
  const auto end = static_cast<std::uint32_t>(problem_.steps.size());
  for (given_ = states_[state].given;; ++given_) {
    if (is_recording_ && state < states_.size() && states_[state].given == given_) {
      save(states_[state++]);
    }
    if (given_ == backward_) {
      result_.backward = result_.steps.size();
      leave_forward();
    }
    if (given_ == end) {
      return;
    }
    add_given();
    if (given_ >= backward_) {
      release();
    }
    leave_within_pass();
  }
}

// Notes the first step of the backward pass at which the state of a root matters.
void ScheduleExpander::touch(std::uint32_t root) {
  if (is_recording_ && given_ >= backward_) {
    touched_[root] = std::min(touched_[root], given_);
  }
}

void ScheduleExpander::recompute_early() {
  for (const std::uint32_t root : early_[given_]) {
    touch(root);
    if ((*decisions_)[root] == TensorDecision::drop_early) {
      require(root);
    }
  }
}

void ScheduleExpander::add_given() {
  recompute_early();
  const ProblemStep& step = problem_.steps[given_];
  switch (step.kind) {
    case StepKind::compute:
      for (const std::uint32_t root : reads(step.id)) {
        require(root);
      }
      run(step.id, false);
      return;
    case StepKind::fetch:
      touch(step.id);
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
    touch(root);
    const bool joins = has_parts_[root] != 0 && interval_[root] >= 0;
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
  if (is_recording_) {
    begun_[root] = std::min(begun_[root], given_);
  }
  if (leaves_always((*decisions_)[root])) {
    present_.push_back(root);
  }
}

void ScheduleExpander::require(std::uint32_t root) {
  touch(root);
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
  if (is_input_[root] != 0) {
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
  for (std::uint32_t m = first_maker_[root]; m < first_maker_[root + 1]; ++m) {
    const std::uint32_t maker = makers_[m];
    check(nodes_[maker].may_repeat, "a node that may not run again would have to");
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
    if (interval_[r] >= 0) {
      leave_forward(r);
    }
  }
}

void ScheduleExpander::leave_forward(std::uint32_t root) {
  const TensorDecision decision = (*decisions_)[root];
  if (leaves_always(decision)) {
    return;
  }
  if (is_swapped(decision)) {
    leave(root);
  } else if (decision != TensorDecision::keep || needed_backward_[root] == 0) {
    interval_[root] = -1;
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
  for (const std::uint32_t root : offloaded_) {
    if (interval_[root] >= 0) {
      result_.intervals[static_cast<std::size_t>(interval_[root])].last =
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
