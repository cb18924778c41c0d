#include "lms/start_plans.h"

#include <algorithm>
#include <iterator>

#include "lms/narrow_roots.h"

namespace cnn::lms {
namespace {

double seconds_to_make(const PlanningProblem& problem, std::uint32_t root) {
  double seconds = 0;
  for (const std::uint32_t maker : problem.roots[root].makers) {
    seconds += problem.nodes[maker].seconds;
  }
  return seconds;
}

}  // namespace

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
