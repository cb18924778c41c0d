#include "lms/unroll.h"

#include <algorithm>
#include <string>

#include "runtime/error.h"

namespace cnn::lms {

Unroller::Unroller(const Outline& outline)
    : outline_(outline), stay_(outline.roots.size(), -1), away_(outline.roots.size()) {
  flatten();
  run_forward();
}

void Unroller::flatten() {
  const auto here = [this] {
    return Node{.reads = static_cast<std::uint32_t>(lists_.size()),
                .may_take = static_cast<std::uint32_t>(pairs_.size())};
  };
  for (const OutlineNode& node : outline_.nodes) {
    Node flat = here();
    flat.seconds = node.seconds;
    flat.writes = flat.reads + static_cast<std::uint32_t>(node.reads.size());
    lists_.insert(lists_.end(), node.reads.begin(), node.reads.end());
    lists_.insert(lists_.end(), node.writes.begin(), node.writes.end());
    pairs_.insert(pairs_.end(), node.may_take.begin(), node.may_take.end());
    nodes_.push_back(flat);
  }
  nodes_.push_back(here());
  for (const Root& root : outline_.roots) {
    has_parts_.push_back(root.makers.size() > 1);
  }
}

std::span<const std::uint32_t> Unroller::reads(std::uint32_t node) const {
  return {lists_.data() + nodes_[node].reads, lists_.data() + nodes_[node].writes};
}
std::span<const std::uint32_t> Unroller::writes(std::uint32_t node) const {
  return {lists_.data() + nodes_[node].writes, lists_.data() + nodes_[node + 1].reads};
}
std::span<const OutlineNode::TakeOver> Unroller::may_take(std::uint32_t node) const {
  return {pairs_.data() + nodes_[node].may_take, pairs_.data() + nodes_[node + 1].may_take};
}

void Unroller::run_forward() {
  for (; given_ < outline_.backward && given_ < outline_.steps.size(); ++given_) {
    add_given();
  }
  result_.backward = result_.steps.size();
  forward_ = result_;
  forward_stay_ = stay_;
  forward_candidates_ = candidates_.size();
}

const Unrolled& Unroller::unroll(const Fates& fates) {
  fates_ = &fates;
  result_.steps.resize(forward_.steps.size());
  result_.stays = forward_.stays;
  result_.taken_over.clear();
  result_.seconds = forward_.seconds;
  candidates_.resize(forward_candidates_);
  borrowed_.clear();
  stay_ = forward_stay_;
  std::ranges::fill(away_, 0);
  leave_forward();
  for (given_ = static_cast<std::uint32_t>(outline_.backward); given_ < outline_.steps.size();
       ++given_) {
    add_given();
    release();
  }
  settle_take_overs();
  return result_;
}

void Unroller::add_given() {
  const OutlineStep& step = outline_.steps[given_];
  switch (step.kind) {
    case StepKind::compute:
      for (const std::uint32_t root : reads(step.id)) {
        require(root);
      }
      run(step.id, false);
      return;
    case StepKind::fetch:
      if (stay_[step.id] < 0) {
        begin(step.id, false);
      }
      break;
    case StepKind::offload:
      require(step.id);
      result_.stays[static_cast<std::size_t>(stay_[step.id])].last =
          static_cast<std::uint32_t>(result_.steps.size());
      break;
  }
  result_.steps.push_back({step.kind, step.id, given_, false});
}

void Unroller::run(std::uint32_t node, bool again) {
  const auto step = static_cast<std::uint32_t>(result_.steps.size());
  for (const std::uint32_t root : reads(node)) {
    const std::int32_t stay = stay_[root];
    check(stay >= 0, "tensors of which each needs a part of the other would be made again");
    result_.stays[static_cast<std::size_t>(stay)].last = step;
  }
  const std::span<const OutlineNode::TakeOver> pairs = may_take(node);
  const std::size_t from = candidates_.size();
  for (const OutlineNode::TakeOver& pair : pairs) {
    candidates_.push_back({step, static_cast<std::uint32_t>(stay_[pair.from]), 0});
  }
  for (const std::uint32_t root : writes(node)) {
    // A part joins the others, but an output that is there is made anew in other bytes.
    const bool joins = has_parts_[root] && stay_[root] >= 0;
    if (!joins) {
      begin(root, false);
    }
    Stay& stay = result_.stays[static_cast<std::size_t>(stay_[root])];
    stay.last = stay.written = step;
  }
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    candidates_[from + p].to = static_cast<std::uint32_t>(stay_[pairs[p].to]);
  }
  result_.steps.push_back({StepKind::compute, node, given_, again});
  result_.seconds += nodes_[node].seconds;
}

void Unroller::begin(std::uint32_t root, bool returns) {
  const auto step = static_cast<std::uint32_t>(result_.steps.size());
  stay_[root] = static_cast<std::int32_t>(result_.stays.size());
  result_.stays.push_back(
      {.root = root, .first = step, .last = step, .written = step, .returns = returns});
}

void Unroller::require(std::uint32_t root) {
  if (stay_[root] >= 0) {
    return;
  }
  if (away_[root] != 0) {
    begin(root, true);
    return;
  }
  if (outline_.roots[root].is_input) {
    begin(root, false);
    result_.steps.push_back({StepKind::fetch, root, given_, true});
    return;
  }
  repeat_makers(root);
}

// Other nodes may need of a root with parts what lies between its makers: those find it begun, and
// make what was asked for before it. So a root may be there once its sources are.
void Unroller::repeat_makers(std::uint32_t root) {
  bool begun = false;
  for (const std::uint32_t maker : outline_.roots[root].makers) {
    check(outline_.nodes[maker].may_repeat, "a node that may not run again would have to");
    for (const std::uint32_t source : reads(maker)) {
      const bool was_there = stay_[source] >= 0;
      require(source);
      if (!was_there && (*fates_)[source] == Fate::drop_often && source != root) {
        borrowed_.push_back(source);
      }
    }
    if (!begun && stay_[root] >= 0) {
      return;
    }
    begun = true;
    run(maker, true);
  }
}

// A root that is not kept ends with its last use so far; what backward needs of it begins anew.
void Unroller::leave_forward() {
  for (std::size_t r = 0; r < stay_.size(); ++r) {
    if (stay_[r] < 0) {
      continue;
    }
    const Root& root = outline_.roots[r];
    if ((*fates_)[r] == Fate::swap) {
      result_.stays[static_cast<std::size_t>(stay_[r])].leaves = true;
      away_[r] = 1;
      stay_[r] = -1;
    } else if ((*fates_)[r] != Fate::keep || !root.needed_backward) {
      stay_[r] = -1;
    }
  }
}

void Unroller::release() {
  for (const std::uint32_t root : borrowed_) {
    if (stay_[root] >= 0) {
      stay_[root] = -1;
    }
  }
  borrowed_.clear();
}

void Unroller::settle_take_overs() {
  given_away_.assign(result_.stays.size(), 0);
  settled_.assign(result_.stays.size(), 0);
  for (const Candidate& candidate : candidates_) {
    const Stay& from = result_.stays[candidate.from];
    const Stay& to = result_.stays[candidate.to];
    if (from.last == candidate.step && !from.leaves && to.first == candidate.step &&
        given_away_[candidate.from] == 0 && settled_[candidate.to] == 0) {
      result_.taken_over.push_back({candidate.step, outline_.roots[to.root].bytes});
      given_away_[candidate.from] = settled_[candidate.to] = 1;
    }
  }
}

}  // namespace cnn::lms
