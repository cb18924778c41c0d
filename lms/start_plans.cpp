#include "lms/start_plans.h"

#include <algorithm>
#include <iterator>

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
  const std::vector<std::uint32_t>& points = changes.articulation_points();
  std::ranges::copy_if(changes.movable(), std::back_inserter(all_),
                       [&](std::uint32_t r) { return problem.roots[r].may_drop; });
  std::ranges::stable_sort(all_, {}, [&](std::uint32_t r) {
    return seconds_to_make(problem, r) / static_cast<double>(problem.roots[r].bytes);
  });
  std::ranges::copy_if(all_, std::back_inserter(others_), [&](std::uint32_t r) {
    return std::ranges::find(points, r) == points.end();
  });
}

std::vector<std::size_t> StartPlans::spacings() const {
  const std::vector<std::uint32_t>& points = changes_.articulation_points();
  std::size_t all = 0;
  for (const std::uint32_t r : points) {
    all += problem_.roots[r].bytes;
  }
  constexpr std::size_t fewest = 4, most = 128;  // checkpoints
  std::vector<std::size_t> spacings;
  for (std::size_t count = fewest; points.size() >= count && count <= most; count *= 2) {
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
  if (!has_checkpoints) {
    return decisions;
  }
  std::size_t passed = 0;  // bytes since the latest checkpoint
  for (const std::uint32_t point : changes_.articulation_points()) {
    passed += problem_.roots[point].bytes;
    if (passed > family.spacing) {
      passed = 0;
    } else {
      changes_.set(decisions, point, TensorDecision::drop);
    }
  }
  return decisions;
}

}  // namespace cnn::lms
