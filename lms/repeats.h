#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lms/edit.h"
#include "lms/expanded_schedule.h"
#include "lms/planning_problem.h"

namespace cnn::lms {

struct Request;

// Finds the nodes to recompute for dropped tensors, for rule-based policies.
class Repeats {
 public:
  // The request must outlive it.
  explicit Repeats(const Request& request);

  const PlanningProblem& problem() const { return problem_; }
  // Returns the index of a tensor among the roots of the problem.
  std::size_t root(TensorId tensor) const { return root_of_[index_of(tensor)]; }
  // Returns decisions that drop nothing.
  TensorDecisions kept() const {
    return TensorDecisions(problem_.roots.size(), TensorDecision::keep);
  }

  // Returns the recomputations in execution order. Nothing: a node cannot run again, would read a
  // variable after its update, or needs a root for which `is_away` is true at that step.
  using IsAway = std::function<bool(std::size_t root, StepId step)>;
  std::optional<std::vector<Recompute>> find(const TensorDecisions& decisions,
                                             const IsAway& is_away = {});
  // Drops the candidates of a longer list one by one in order, as far as possible, at most `most`
  // of them (-1: all).
  std::vector<Recompute> drop_each(const std::vector<std::size_t>& roots, std::int64_t most);
  // Returns the last step before which a node may run again, since that step updates one of its
  // inputs. Nothing: it may never run again.
  std::optional<std::uint32_t> last_repeat(std::uint32_t node) const;
  double seconds(const std::vector<Recompute>& repeats) const;

 private:
  bool is_possible(const ExpandedStep& step, const IsAway& is_away) const;

  const Request& request_;
  PlanningProblem problem_;
  ScheduleExpander expander_;
  std::vector<std::size_t> root_of_;  // by TensorId
  std::vector<std::uint32_t>
      updated_;  // by NodeId: the first step that changes a variable it reads
};

}  // namespace cnn::lms
