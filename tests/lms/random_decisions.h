#pragma once

#include <cstddef>
#include <random>

#include "lms/expanded_schedule.h"
#include "lms/planning_problem.h"

namespace cnn::tests {

// Changes the decision on one root to any that it may have. within_pass: also to those that act
// within a pass.
inline void change_one(lms::TensorDecisions& decisions, const lms::PlanningProblem& problem,
                       std::mt19937& random, bool within_pass) {
  constexpr unsigned between_passes = 6, all = 8;  // kinds; the last ones act within a pass
  const std::size_t r = random() % decisions.size();
  const auto decision =
      static_cast<lms::TensorDecision>(random() % (within_pass ? all : between_passes));
  const lms::Root& root = problem.roots[r];
  const bool may = leaves_always(decision) ? root.may_leave_often : root.may_leave;
  decisions[r] =
      may && (root.may_drop || !is_dropped(decision)) ? decision : lms::TensorDecision::keep;
}

}  // namespace cnn::tests
