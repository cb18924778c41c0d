#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lms/decision_changes.h"
#include "lms/expanded_schedule.h"
#include "lms/planning_problem.h"

namespace cnn::lms {

// Simple plans without swaps, from which a search starts. A plan that recomputes needs checkpoints:
// a chain of dropped tensors is recomputed as a whole, so all of it must be there at once. The
// plans of a family keep articulation points as checkpoints, the same bytes apart, and drop those
// between; they differ in the share of the other roots that they drop, those with the least
// recompute time per byte first.
class StartPlans {
 public:
  static constexpr std::size_t shares = 32;  // parts of all roots: the unit of a share
  // The spacing of a family that drops articulation points as all other roots, without checkpoints.
  static constexpr std::size_t no_checkpoints = 0;

  struct Family {
    TensorDecision how = TensorDecision::drop_often;  // of dropped roots between these points
    std::size_t spacing = no_checkpoints;             // bytes of these points for one checkpoint
  };

  // Both must outlive it.
  StartPlans(const PlanningProblem& problem, const DecisionChanges& changes);

  // Returns the spacings worth trying, descending; none where there are few articulation points.
  std::vector<std::size_t> spacings() const;
  // share: 0 to shares.
  TensorDecisions plan(const Family& family, std::size_t share) const;

 private:
  const PlanningProblem& problem_;
  const DecisionChanges& changes_;
  std::vector<std::uint32_t> others_, all_;  // by recompute time per byte, ascending
};

}  // namespace cnn::lms
