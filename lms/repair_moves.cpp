#include "lms/repair_moves.h"

#include <algorithm>
#include <functional>

namespace cnn::lms {

std::vector<RepairMove> repair_moves(const DecisionChanges& changes, TensorDecisions decisions) {
  std::vector<RepairMove> moves;
  for (const std::uint32_t root : changes.movable()) {
    const TensorDecision before = decisions[root];
    for (const TensorDecision decision :
         {TensorDecision::drop, TensorDecision::drop_often, TensorDecision::swap,
          TensorDecision::swap_often, TensorDecision::drop_always, TensorDecision::swap_always}) {
      if (leaves_always(decision) && !changes.within_pass()) {
        continue;
      }
      changes.set(decisions, root, decision);
      if (decisions[root] != before) {
        moves.push_back({.root = root, .decision = decision});
      }
    }
    decisions[root] = before;
  }
  return moves;
}

std::vector<double> bytes_above_budget(const PlanningProblem& problem,
                                       const ExpandedSchedule& expanded,
                                       std::span<const std::size_t> live, std::size_t budget) {
  std::vector<std::uint32_t> above{0};  // the number of such steps before each step
  for (const std::size_t bytes : live) {
    above.push_back(above.back() + (bytes > budget ? 1 : 0));
  }
  std::vector<double> held(problem.roots.size());
  for (const LiveInterval& one : expanded.intervals) {
    if (one.first + 1 < one.last) {
      held[one.root] += static_cast<double>(problem.roots[one.root].bytes) *
                        (above[one.last] - above[one.first + 1]);
    }
  }
  return held;
}

void keep_most_useful(std::vector<RepairMove>& moves, std::span<const double> held,
                      std::size_t most) {
  std::erase_if(moves, [&](const RepairMove& move) { return held[move.root] <= 0; });
  std::ranges::stable_sort(moves, std::greater<>(),
                           [&](const RepairMove& move) { return held[move.root]; });
  moves.resize(std::min(moves.size(), most));
}

}  // namespace cnn::lms
