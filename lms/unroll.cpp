#include "lms/unroll.h"

#include <algorithm>
#include <string>

#include "runtime/error.h"

namespace cnn::lms {

Unroller::Unroller(const Outline& outline) : outline_(outline), away_(outline.roots.size()) {}

const Unrolled& Unroller::unroll(const Fates& fates) {
  fates_ = &fates;
  result_.steps.clear();
  result_.stays.clear();
  result_.taken_over.clear();
  result_.seconds = 0;
  candidates_.clear();
  borrowed_.clear();
  stay_.assign(outline_.roots.size(), -1);
  away_.assign(outline_.roots.size(), false);
  for (given_ = 0; given_ < outline_.steps.size(); ++given_) {
    if (given_ == outline_.backward) {
      result_.backward = result_.steps.size();
      leave_forward(fates);
    }
    add_given(given_);
    release();
  }
  settle_take_overs();
  return result_;
}

void Unroller::add_given(std::uint32_t given) {
  const OutlineStep& step = outline_.steps[given];
  switch (step.kind) {
    case StepKind::compute:
      for (const std::uint32_t root : outline_.nodes[step.id].reads) {
        require(root);
      }
      run(step.id, false);
      break;
    case StepKind::fetch:
      if (stay_[step.id] < 0) {
        begin(step.id, false);
      }
      result_.steps.push_back({step.kind, step.id, given, false});
      break;
    case StepKind::offload:
      require(step.id);
      touch(step.id);
      result_.steps.push_back({step.kind, step.id, given, false});
      break;
  }
}

void Unroller::run(std::uint32_t node, bool again) {
  const OutlineNode& n = outline_.nodes[node];
  const auto step = static_cast<std::uint32_t>(result_.steps.size());
  for (const std::uint32_t root : n.reads) {
    check(stay_[root] >= 0, "tensors of which each needs a part of the other would be made again");
    touch(root);
  }
  const std::size_t from = candidates_.size();
  for (const OutlineNode::TakeOver& pair : n.may_take) {
    candidates_.push_back({step, static_cast<std::uint32_t>(stay_[pair.from]), 0});
  }
  for (const std::uint32_t root : n.writes) {
    // A part joins the others, but an output that is there is made anew in other bytes.
    const bool joins = outline_.roots[root].makers.size() > 1 && stay_[root] >= 0;
    if (!joins) {
      begin(root, false);
    }
    result_.stays[touch(root)].written = step;
  }
  for (std::size_t p = 0; p < n.may_take.size(); ++p) {
    candidates_[from + p].to = static_cast<std::uint32_t>(stay_[n.may_take[p].to]);
  }
  result_.steps.push_back({StepKind::compute, node, given_, again});
  result_.seconds += n.seconds;
}

std::uint32_t Unroller::touch(std::uint32_t root) {
  const auto stay = static_cast<std::uint32_t>(stay_[root]);
  result_.stays[stay].last = static_cast<std::uint32_t>(result_.steps.size());
  return stay;
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
  if (away_[root]) {
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

// Of a root with parts, others may need what lies between its makers: those find it begun, and make
// what was asked for before it. So a root may be there once its sources are.
void Unroller::repeat_makers(std::uint32_t root) {
  bool begun = false;
  for (const std::uint32_t maker : outline_.roots[root].makers) {
    check(outline_.nodes[maker].may_repeat, "a node that may not run again would have to");
    for (const std::uint32_t source : outline_.nodes[maker].reads) {
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

// What is not kept ends with its last use so far; what backward needs of it begins anew.
void Unroller::leave_forward(const Fates& fates) {
  for (std::size_t r = 0; r < stay_.size(); ++r) {
    if (stay_[r] < 0) {
      continue;
    }
    const Root& root = outline_.roots[r];
    if (fates[r] == Fate::swap) {
      result_.stays[static_cast<std::size_t>(stay_[r])].leaves = true;
      away_[r] = true;
      stay_[r] = -1;
    } else if (fates[r] != Fate::keep || !root.needed_backward) {
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
  given_away_.assign(result_.stays.size(), false);
  settled_.assign(result_.stays.size(), false);
  for (const Candidate& candidate : candidates_) {
    const Stay& from = result_.stays[candidate.from];
    const Stay& to = result_.stays[candidate.to];
    if (from.last == candidate.step && !from.leaves && to.first == candidate.step &&
        !given_away_[candidate.from] && !settled_[candidate.to]) {
      result_.taken_over.push_back({candidate.step, outline_.roots[to.root].bytes});
      given_away_[candidate.from] = settled_[candidate.to] = true;
    }
  }
}

}  // namespace cnn::lms
