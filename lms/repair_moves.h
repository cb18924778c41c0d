#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lms/decision_changes.h"
#include "lms/expanded_schedule.h"
#include "lms/planning_problem.h"

namespace cnn::lms {

// A change of one decision that frees bytes in the steps above the budget; its price is in seconds
// per byte. A priority queue of moves begins with the cheapest.
struct RepairMove {
  double price = 0;
  std::uint32_t root = 0;
  TensorDecision decision = TensorDecision::keep;
  bool operator<(const RepairMove& other) const { return price > other.price; }
};

// Returns the moves that change these decisions, without prices.
std::vector<RepairMove> repair_moves(const DecisionChanges& changes, TensorDecisions decisions);

// Returns, by root, the bytes that it holds during steps that are above the budget, summed over
// these steps. It counts no step that begins or ends an interval of the root, since that uses it:
// the move of a root without such bytes frees nothing there. live: bytes by expanded step.
std::vector<double> bytes_above_budget(const PlanningProblem& problem,
                                       const ExpandedSchedule& expanded,
                                       std::span<const std::size_t> live, std::size_t budget);

// Keeps the moves of the roots that hold most bytes above the budget, `most` of them.
void keep_most_useful(std::vector<RepairMove>& moves, std::span<const double> held,
                      std::size_t most);

}  // namespace cnn::lms
