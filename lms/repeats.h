#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lms/edit.h"
#include "lms/expanded_schedule.h"
#include "lms/planning_problem.h"

namespace cnn::lms {

struct Request;

// The nodes that run again where tensors are dropped, for policies that decide that by rules.
class Repeats {
 public:
  // request: must outlive it.
  explicit Repeats(const Request& request);

  const PlanningProblem& problem() const { return problem_; }
  // Returns the place of a tensor among the roots of the problem.
  std::size_t root(TensorId tensor) const { return root_of_[index_of(tensor)]; }
  // Nothing is dropped.
  TensorDecisions kept() const {
    return TensorDecisions(problem_.roots.size(), TensorDecision::keep);
  }

  // In the order in which they run. Nothing: one of them cannot, would read a variable after its
  // update, or a root of which `is_away` says so at that step.
  using IsAway = std::function<bool(std::size_t root, StepId step)>;
  std::optional<std::vector<Recompute>> find(const TensorDecisions& decisions,
                                             const IsAway& is_away = {});
  // The same of a longer list, dropping the candidates one by one in their order as far as it can
  // be done, at most so many (-1: all).
  std::vector<Recompute> drop_each(const std::vector<std::size_t>& roots, std::int64_t most);
  // Returns the last step in front of which a node may run again, since what it reads is updated
  // there. Nothing: it may not run again at all.
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
