#pragma once

#include <cstddef>
#include <limits>

#include "lms/evaluate.h"
#include "lms/expanded_schedule.h"
#include "lms/options.h"
#include "lms/planning_problem.h"

namespace cnn::lms {

struct SearchOptions {
  SyncMode sync = SyncMode::none;
  std::size_t device_bytes = 0;  // of the arena
  // For what leaves; what leaves in one step is there all at once.
  std::size_t host_bytes = std::numeric_limits<std::size_t>::max();
  bool swaps = true, drops = true;
  bool minimize_memory = false;   // find the plan with the smallest peak, whatever its time
  double good_enough = 0;         // seconds: the search ends where a plan takes no longer
  std::size_t work = 40'000'000;  // expanded steps that may be evaluated: bounds the time
  // Simulated annealing starts with steps that may be slower than the current one by this share.
  double temperature = 0.01;
  // Decisions of a plan for nearly the same problem; null: many simple plans are tried.
  const TensorDecisions* start = nullptr;
  bool prune_moves = false;  // at last, keep the tensors whose moves gain no time
};

// Decisions and the evaluation of their schedule.
struct Solution {
  TensorDecisions decisions;
  Evaluation evaluation;
};
// Returns the best solution that simulated annealing finds, from one given or from greedy starts. A
// function of its arguments alone: the random numbers are the same in every call.
Solution search(const PlanningProblem& problem, const SearchOptions& options);

}  // namespace cnn::lms
