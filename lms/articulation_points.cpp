#include "lms/articulation_points.h"

#include <algorithm>
#include <numeric>

namespace cnn::lms {
namespace {

// The steps of the forward pass between which a root is there for later steps of that pass.
struct ForwardSpan {
  std::size_t written = 0, read = 0;
};

std::vector<ForwardSpan> forward_spans(const PlanningProblem& problem) {
  std::vector<ForwardSpan> spans(problem.roots.size());
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

std::vector<std::uint32_t> articulation_points(const PlanningProblem& problem) {
  const std::vector<ForwardSpan> spans = forward_spans(problem);
  // Counts the bytes that are there after each step for later ones of the pass: changes, then sums.
  std::vector<std::int64_t> bytes(problem.backward + 1);
  for (std::uint32_t r = 0; r < problem.roots.size(); ++r) {
    if (!problem.roots[r].is_input && spans[r].read > spans[r].written) {
      bytes[spans[r].written] += static_cast<std::int64_t>(problem.roots[r].bytes);
      bytes[spans[r].read] -= static_cast<std::int64_t>(problem.roots[r].bytes);
    }
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  constexpr std::int64_t small_share = 10;  // what else is there has at most a tenth of the bytes
  std::vector<std::uint32_t> points;
  for (std::uint32_t r = 0; r < problem.roots.size(); ++r) {
    const auto own = static_cast<std::int64_t>(problem.roots[r].bytes);
    if (!problem.roots[r].is_input && own > 0 && spans[r].read > spans[r].written &&
        bytes[spans[r].written] <= own + own / small_share) {
      points.push_back(r);
    }
  }
  std::ranges::stable_sort(points, {}, [&](std::uint32_t r) { return spans[r].written; });
  return points;
}

}  // namespace cnn::lms
