// The default policy: decides for each tensor that the forward pass writes for the backward pass
// whether it is kept, swapped or recomputed, by a search with exact evaluation.
//
// More memory is never slower, by construction. Searches are heuristic, so a search for a larger
// budget may end at a slower plan. They run only for budgets of one fixed series, which begins at
// the smallest feasible budget and depends on no other, and the plan for a budget is the fastest of
// all plans of the series up to it. A budget whose lower bound is not below the fastest plan so far
// cannot have a faster plan and is skipped, with all smaller ones.
#include "lms/planned.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "lms/bound.h"
#include "lms/budget_search.h"
#include "lms/planning_problem.h"
#include "lms/policies.h"
#include "lms/python_text.h"
#include "lms/summary.h"
#include "runtime/memory_plan.h"

namespace cnn::lms {
namespace {

// Returns the budgets of the series up to this one, ascending: dense near the smallest, where
// little memory saves much time.
std::vector<std::size_t> budget_series(std::size_t smallest, std::size_t last) {
  std::vector<std::size_t> series;
  double ratio = 1;
  const auto bytes = [&] {
    return static_cast<std::size_t>(static_cast<double>(smallest) * ratio) / alignment * alignment;
  };
  while (bytes() <= last) {
    series.push_back(bytes());
    constexpr double near = 1.1, near_step = 1.04, far_step = 1.03;
    ratio *= ratio < near ? near_step : far_step;
  }
  return series;
}

bool fits(const PlacedPlan& plan, const Budget& budget) {
  return plan.outcome.device_bytes <= budget.device && plan.outcome.host_bytes <= budget.host;
}

// Returns the budgets other than the last whose plans may be faster than this, as their bounds say.
std::vector<std::size_t> promising(const Request& request, const std::vector<std::size_t>& series,
                                   double seconds) {
  constexpr double rounding = 1e-9;
  std::vector<std::size_t> budgets;
  for (std::size_t i = series.size(); i-- > 1;) {
    if (lower_bound_at(request, series[i - 1]) >= seconds * (1 - rounding)) {
      break;  // a smaller budget has a higher bound
    }
    budgets.push_back(series[i - 1]);
  }
  return budgets;
}

// Searches the budgets on all processors. Searches are independent, so the result does not depend
// on the number of processors.
std::vector<PlacedPlan> search_all(const Request& request, const PlanningProblem& problem,
                                   const SmallestPlan& smallest,
                                   const std::vector<std::size_t>& budgets) {
  std::vector<PlacedPlan> plans(budgets.size());
  std::vector<std::exception_ptr> errors(budgets.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < budgets.size(); i = next++) {
      try {
        plans[i] = search_budget(request, problem, smallest, budgets[i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  {
    const std::size_t threads =
        std::min<std::size_t>(budgets.size(), std::thread::hardware_concurrency());
    std::vector<std::jthread> workers;
    for (std::size_t t = 1; t < threads; ++t) {
      workers.emplace_back(work);
    }
    work();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
  return plans;
}

PlacedPlan fastest(const Request& request, const PlanningProblem& problem,
                   const SmallestPlan& smallest) {
  const std::vector<std::size_t> series =
      budget_series(smallest.placed.outcome.device_bytes, request.budget.device);
  PlacedPlan best = smallest.placed;
  const auto accept = [&](PlacedPlan plan) {
    if (fits(plan, request.budget) && plan.outcome.seconds < best.outcome.seconds) {
      best = std::move(plan);
    }
  };
  if (!series.empty()) {
    if (lower_bound_at(request, series.back()) < request.useful_seconds) {
      accept(search_budget(request, problem, smallest, series.back()));
    }
    const std::vector<std::size_t> budgets =
        promising(request, series, std::min(best.outcome.seconds, request.useful_seconds));
    for (PlacedPlan& plan : search_all(request, problem, smallest, budgets)) {
      accept(std::move(plan));
    }
  }
  return best;
}

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
  const SmallestPlan smallest = minimize_memory(request, problem);
  PlacedPlan placed = fastest(request, problem, smallest);
  Plan plan{.schedule = std::move(placed.schedule),
            .notes = {},
            .enough = placed.enough,
            .floor = smallest.placed.outcome.device_bytes};
  plan.notes = moves_of(request.graph, plan.schedule);
  return plan;
}

}  // namespace cnn::lms
