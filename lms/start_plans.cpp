#include "lms/start_plans.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace cnn::lms {
namespace {

double seconds_to_make(const PlanningProblem& problem, std::uint32_t root) {
  double seconds = 0;
  for (const std::uint32_t maker : problem.roots[root].makers) {
    seconds += problem.nodes[maker].seconds;
  }
  return seconds;
}

// The steps of the forward pass between which a root is there for later steps of that pass.
struct Span {
  std::size_t written = 0, read = 0;
};

std::vector<Span> forward_spans(const PlanningProblem& problem) {
  std::vector<Span> spans(problem.roots.size());
  for (std::size_t s = 0; s < problem.backward; ++s) {
    if (problem.steps[s].kind != StepKind::compute) {
      continue;
    }
    const ProblemNode& node = problem.nodes[problem.steps[s].id];
    for (const std::uint32_t root : node.writes) {
      spans[root].written = s;
    }
    for (const std::uint32_t root : node.reads) {
      spans[root].read = s;
    }
  }
  return spans;
}

}  // namespace

std::vector<std::uint32_t> narrow_roots(const PlanningProblem& problem) {
  const std::vector<Span> spans = forward_spans(problem);
  // By step: bytes after it for later steps of the pass; first as changes.
  std::vector<std::int64_t> bytes(problem.backward + 1);
  for (std::uint32_t r = 0; r < problem.roots.size(); ++r) {
    if (!problem.roots[r].is_input && spans[r].read > spans[r].written) {
      bytes[spans[r].written] += static_cast<std::int64_t>(problem.roots[r].bytes);
      bytes[spans[r].read] -= static_cast<std::int64_t>(problem.roots[r].bytes);
    }
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  constexpr std::int64_t small_share = 10;  // what else is there has at most a tenth of the bytes
  std::vector<std::uint32_t> narrow;
  for (std::uint32_t r = 0; r < problem.roots.size(); ++r) {
    const auto own = static_cast<std::int64_t>(problem.roots[r].bytes);
    if (!problem.roots[r].is_input && own > 0 && spans[r].read > spans[r].written &&
        bytes[spans[r].written] <= own + own / small_share) {
      narrow.push_back(r);
    }
  }
  std::ranges::stable_sort(narrow, {}, [&](std::uint32_t r) { return spans[r].written; });
  return narrow;
}

StartPlans::StartPlans(const PlanningProblem& problem, const DecisionChanges& changes)
    : problem_(problem), changes_(changes) {
  const auto may_drop = [&](std::uint32_t r) {
    return changes.is_movable(r) && problem.roots[r].may_drop;
  };
  std::ranges::copy_if(narrow_roots(problem), std::back_inserter(narrow_), may_drop);
  std::ranges::copy_if(changes.movable(), std::back_inserter(all_), may_drop);
  std::ranges::stable_sort(all_, {}, [&](std::uint32_t r) {
    return seconds_to_make(problem, r) / static_cast<double>(problem.roots[r].bytes);
  });
  std::ranges::copy_if(all_, std::back_inserter(others_), [&](std::uint32_t r) {
    return std::ranges::find(narrow_, r) == narrow_.end();
  });
}

std::vector<std::size_t> StartPlans::spacings() const {
  std::size_t all = 0;
  for (const std::uint32_t r : narrow_) {
    all += problem_.roots[r].bytes;
  }
  constexpr std::size_t fewest = 4, most = 128;  // checkpoints
  std::vector<std::size_t> spacings;
  for (std::size_t count = fewest; narrow_.size() >= count && count <= most; count *= 2) {
    spacings.push_back(all / count);
  }
  return spacings;
}

TensorDecisions StartPlans::plan(const Family& family, std::size_t share) const {
  TensorDecisions decisions(problem_.roots.size(), TensorDecision::keep);
  const bool has_checkpoints = family.spacing != no_checkpoints;
  const std::vector<std::uint32_t>& order = has_checkpoints ? others_ : all_;
  for (std::size_t i = 0; i < order.size() * share / shares; ++i) {
    changes_.set(decisions, order[i], family.how);
  }
  std::size_t passed = 0;  // bytes since the latest checkpoint
  for (std::size_t i = 0; has_checkpoints && i < narrow_.size(); ++i) {
    passed += problem_.roots[narrow_[i]].bytes;
    if (passed > family.spacing) {
      passed = 0;
    } else {
      changes_.set(decisions, narrow_[i], TensorDecision::drop);
    }
  }
  return decisions;
}

}  // namespace cnn::lms
