#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lms/expanded_schedule.h"
#include "lms/planning_problem.h"
#include "runtime/linear_congruence.h"

namespace cnn::lms {

// Changes of decisions that a search tries, at random or as asked for. The random numbers are the
// same for every object.
class DecisionChanges {
 public:
  struct Limits {
    bool swaps = true, drops = true;           // what a root may do, if it may leave
    std::span<const std::uint8_t> fixed = {};  // by root: its decision stays. Empty: none stays
  };
  // The problem must outlive it.
  DecisionChanges(const PlanningProblem& problem, const Limits& limits);

  // Returns the roots whose decisions may change, in the order of the problem.
  const std::vector<std::uint32_t>& movable() const { return movable_; }
  bool is_movable(std::uint32_t root) const { return is_movable_[root] != 0; }
  // Returns the articulation points of the forward pass that may be dropped, in its order.
  const std::vector<std::uint32_t>& articulation_points() const { return articulation_points_; }
  // Returns whether some roots may leave between uses of one pass.
  bool within_pass() const { return within_pass_; }

  // Sets the decision, or the nearest one that the root may have.
  void set(TensorDecisions& decisions, std::uint32_t root, TensorDecision decision) const;
  // Recomputes a root in memory of its own: what else is recomputed for it is freed at once.
  TensorDecisions with_sources(TensorDecisions decisions, std::uint32_t root,
                               TensorDecision how) const;

  // Below, something must be movable.

  // Changes a plan that fits: mostly exchanges one move for another, as almost all other changes
  // are slower or do not fit. Sometimes changes checkpoints.
  TensorDecisions exchanged(TensorDecisions decisions);
  // Changes some near roots in the same way.
  TensorDecisions changed(TensorDecisions decisions);
  TensorDecision any_decision();
  LinearCongruence& random() { return random_; }

 private:
  TensorDecisions with_other_checkpoints(TensorDecisions decisions);
  std::uint32_t any(const TensorDecisions& decisions, bool moves);

  const PlanningProblem& problem_;
  bool swaps_, drops_;
  std::vector<std::uint32_t> movable_;    // roots
  std::vector<std::uint8_t> is_movable_;  // by root
  std::vector<std::uint32_t> articulation_points_;
  bool within_pass_ = false;
  LinearCongruence random_;
};

}  // namespace cnn::lms
