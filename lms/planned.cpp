// The default policy: decides for each tensor that the forward pass writes for the backward pass
// whether it is kept, swapped or recomputed, by searches with exact evaluation.
#include "lms/planned.h"

#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "lms/budget_search.h"
#include "lms/planning_problem.h"
#include "lms/policies.h"
#include "lms/python_text.h"
#include "lms/series_search.h"
#include "lms/summary.h"

namespace cnn::lms {
namespace {

// Returns notes for --lms_debug: each tensor that leaves, each node that runs again.
std::vector<Note> moves_of(const Graph& graph, const Schedule& schedule) {
  std::vector<Note> notes;
  const std::vector<bool> again = runs_again(graph, schedule);
  for (std::size_t s = 0; s < again.size(); ++s) {
    const Action& action = schedule.steps[s].action;
    const auto* offload = std::get_if<Offload>(&action);
    if (offload != nullptr && may_move(graph, offload->tensor)) {
      const TensorInfo& info = graph.info(offload->tensor);
      notes.push_back({1, "Tensor " + info.name + " leaves the device (" +
                              mib_text(info.desc.bytes()) + " MiB)"});
    } else if (again[s]) {
      notes.push_back({1, "Node " + to_string(graph, action) + " runs again"});
    }
  }
  return notes;
}

}  // namespace

std::size_t min_feasible_bytes(const Request& request) {
  return minimize_memory(request, planning_problem(request)).placed.outcome.device_bytes;
}

Plan planned(const Request& request) {
  const PlanningProblem problem = planning_problem(request);
  const SearchedPlan smallest = minimize_memory(request, problem);
  PlacedPlan placed =
      fastest_of_series(request, problem, smallest, std::thread::hardware_concurrency());
  Plan plan{.schedule = std::move(placed.schedule),
            .notes = {},
            .enough = placed.enough,
            .floor = smallest.placed.outcome.device_bytes};
  plan.notes = moves_of(request.graph, plan.schedule);
  return plan;
}

}  // namespace cnn::lms
