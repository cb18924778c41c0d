#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <span>

#include "lms/evaluate.h"
#include "lms/expanded_schedule.h"
#include "lms/options.h"
#include "lms/planning_problem.h"
#include "lms/policy.h"

namespace cnn::lms {

// The fastest plan that any search has found so far. It wins once it is faster than all plans that
// this search can lead to.
struct Rival {
  const std::atomic<double>* seconds = nullptr;  // others may lower it meanwhile; null: none
  double bound_seconds = 0;                      // a lower bound of the plans of this search

  bool wins() const {
    constexpr double rounding = 1e-9;
    return seconds != nullptr && *seconds <= bound_seconds * (1 - rounding);
  }
};

// Thrown by a search whose rival wins. It is no Error: some other search has the plan.
class SearchOvertaken : public std::exception {
 public:
  const char* what() const noexcept override { return "another search has a faster plan"; }
};

struct SearchOptions {
  SyncMode sync = SyncMode::none;
  std::size_t device_bytes = 0;  // of the arena
  // For swapped tensors, on the host or on a disk behind it; all tensors swapped in one step need
  // these bytes at once.
  std::size_t host_bytes = std::numeric_limits<std::size_t>::max();
  bool swaps = true, drops = true;
  bool minimize_memory = false;   // search the plan with the smallest peak, at any time cost
  double good_enough = 0;         // seconds: the search ends at a plan that takes no longer
  std::size_t work = 40'000'000;  // maximum number of evaluated expanded steps: bounds the time
  // Simulated annealing initially accepts steps that are slower than the current one by this
  // fraction.
  double temperature = 0.01;
  // Decisions of a plan for a similar problem; null: tries many simple plans.
  const TensorDecisions* start = nullptr;
  // Marks, by root, the decisions that stay as they are in `start`. Empty: none.
  std::span<const std::uint8_t> fixed = {};
  bool prune_moves = false;  // at last, keep the tensors whose moves gain no time
  StopCheck stopped = nullptr;
  Rival rival = {};
};

// Decisions and the evaluation of their schedule.
struct Solution {
  TensorDecisions decisions;
  Evaluation evaluation;
};

// Returns the best solution that simulated annealing finds, from one given or from simple plans. A
// function of its arguments alone: the random numbers are the same in every call. Throws
// PlanningStopped when options.stopped says so, and SearchOvertaken when options.rival wins.
Solution search(const PlanningProblem& problem, const SearchOptions& options);

}  // namespace cnn::lms
