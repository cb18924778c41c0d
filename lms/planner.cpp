#include "lms/planner.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "lms/backward_order.h"
#include "lms/bound.h"
#include "lms/catalog.h"
#include "lms/disk_tier.h"
#include "lms/planned.h"
#include "lms/stash.h"
#include "lms/swap_out_waits.h"
#include "runtime/access.h"
#include "runtime/memory_plan.h"
#include "runtime/seconds_since.h"

namespace cnn::lms {
namespace {

std::optional<TensorId> loss_of(const Graph& graph) {
  std::optional<TensorId> loss;
  for (const Output& output : graph.outputs()) {
    loss = output.name == "base_loss" ? output.tensor : loss;
  }
  return loss;
}

// Returns the first step after the loss: from there on gradients are computed.
StepId first_backward(const Graph& graph, const Schedule& schedule) {
  const std::optional<TensorId> loss = loss_of(graph);
  for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
    for (const Access& access : accesses(graph, schedule.steps[s].action)) {
      if (access.tensor == loss && access.kind == Access::Kind::define) {
        return StepId{static_cast<std::uint32_t>(s + 1)};
      }
    }
  }
  return StepId{static_cast<std::uint32_t>(schedule.steps.size())};
}

}  // namespace

double recompute_seconds(const Graph& graph, const Schedule& schedule, const Costs& costs) {
  const std::vector<bool> again = runs_again(graph, schedule);
  double seconds = 0;
  for (std::size_t s = 0; s < again.size(); ++s) {
    if (again[s]) {
      seconds += costs.seconds[index_of(std::get<Compute>(schedule.steps[s].action).node)];
    }
  }
  return seconds;
}

void predict(PlanReport& report, const StepPlan& plan, const Costs& costs) {
  report.timeline = simulate(plan, costs);
  report.predicted_seconds = end_of(report.timeline);
  report.predicted_stalls = stalls(*plan.graph, plan.schedule, report.timeline);
}

Planner::Planner(PlannerOptions options)
    : options_(std::move(options)),
      limits_{.device = options_.budget - std::min(options_.budget, options_.resident_bytes),
              .host = options_.host_bytes,
              .disk = options_.disk_bytes} {}

// Returns the step without a plan, in the order of nodes that the policy plans. Steps that exchange
// gradients keep the network's order: ranks whose steps fit must exchange in the same order as
// those whose steps do not.
Schedule Planner::unplanned_schedule(const StepPlan& unlimited) const {
  const Graph& graph = *unlimited.graph;
  const std::optional<TensorId> loss = loss_of(graph);
  const std::optional<NodeId> last = loss ? graph.producer(*loss) : std::nullopt;
  const bool exchanges = std::ranges::any_of(
      graph.nodes(), [](const Node& node) { return node.op->lane() == Lane::communicate; });
  return last && !exchanges && find_policy(options_.policy).orders
             ? make_schedule(graph, backward_order(graph, unlimited.specs, index_of(*last) + 1))
             : make_schedule(graph);
}

Request Planner::request_for(const StepPlan& unlimited, const Schedule& schedule,
                             const Costs& costs) const {
  return {.graph = *unlimited.graph,
          .specs = unlimited.specs,
          .schedule = schedule,
          .backward = first_backward(*unlimited.graph, schedule),
          .costs = costs,
          .budget = limits_,
          .variable_bytes = options_.resident_bytes,
          .options = options_.options,
          .stopped = options_.stopped};
}

void Planner::start_report(const StepPlan& unlimited, const Costs& costs) {
  report_ = {.budget = options_.budget,
             .need = options_.resident_bytes + unlimited.memory.device_bytes,
             .resident = options_.resident_bytes};
  report_.necessary = report_.need > report_.budget;
  for (std::size_t n = 0; n < costs.seconds.size(); ++n) {
    // Copies and exchanges run beside the compute lane.
    const bool computes = unlimited.graph->nodes()[n].op->lane() == Lane::compute;
    report_.compute_seconds += computes ? costs.seconds[n] : 0;
  }
}

StepPlan Planner::plan(const StepPlan& unlimited, const Costs& costs, double useful_seconds) {
  const auto start = std::chrono::steady_clock::now();
  start_report(unlimited, costs);
  const Schedule given =
      report_.necessary ? unplanned_schedule(unlimited) : make_schedule(*unlimited.graph);
  Request request = request_for(unlimited, given, costs);
  request.useful_seconds = useful_seconds;
  const bool moves = report_.necessary && options_.options.n_tensors != 0;
  const PolicyRow& policy = find_policy(options_.policy);
  Plan made = moves ? policy.plan(request) : Plan{given, {}};
  policy_seconds_ = seconds_since(start);
  if (moves && !policy.places_waits) {
    made = with_swap_out_waits(request, std::move(made));
  }
  schedule_ = moves ? with_disk_tier(request, std::move(made.schedule)) : std::move(made.schedule);
  report_.notes = std::move(made.notes);
  report_.reclaims = made.reclaims;
  floor_ = made.floor > 0 ? made.floor : floor_;
  enough_ = made.enough;
  StepPlan result = place(unlimited, request);
  report_.lower_bound_seconds =
      report_.necessary ? lower_bound(request).seconds : report_.compute_seconds;
  return result;
}

StepPlan Planner::plan_by(const Schedule& schedule, std::size_t enough, const StepPlan& unlimited,
                          const Costs& costs) {
  Schedule given = unplanned_schedule(unlimited);
  if (first_runs(*unlimited.graph, given) != first_runs(*unlimited.graph, schedule)) {
    given = make_schedule(*unlimited.graph);
  }
  const Request request = request_for(unlimited, given, costs);
  start_report(unlimited, costs);
  policy_seconds_ = 0;
  schedule_ = schedule;
  enough_ = enough;
  StepPlan result = place(unlimited, request);
  // The plan may move what the options keep.
  report_.floor = report_.fits ? std::min(report_.floor, report_.peak) : report_.floor;
  report_.lower_bound_seconds = lower_bound_of(request, schedule_);
  return result;
}

StepPlan Planner::place(const StepPlan& unlimited, const Request& request) {
  StepPlan plan = make_plan(unlimited.graph, unlimited.specs, schedule_, enough_);
  report_.peak = report_.resident + plan.memory.device_bytes;
  report_.live_peak = report_.resident + plan.memory.lower_bound_bytes;
  report_.host = plan.memory.host_bytes;
  report_.disk = plan.memory.disk_bytes;
  report_.fits = report_.peak <= report_.budget && report_.host <= limits_.host &&
                 report_.disk <= limits_.disk;
  report_.summary = summarize(*plan.graph, plan.schedule);
  const std::vector<bool> leaves = leaves_device(*plan.graph, plan.schedule);
  report_.kept = static_cast<std::size_t>(std::ranges::count_if(
      candidates(request),
      [&](const Stashed& candidate) { return !leaves[index_of(candidate.tensor)]; }));
  report_.recompute_seconds = recompute_seconds(*plan.graph, plan.schedule, request.costs);
  predict(report_, plan, request.costs);
  floor_ = floor_ > 0 ? floor_ : min_feasible_bytes(request);
  report_.floor = report_.resident + floor_;
  return plan;
}

double Planner::lower_bound_seconds(const StepPlan& unlimited, const Costs& costs) const {
  const Schedule schedule = unplanned_schedule(unlimited);
  return lower_bound(request_for(unlimited, schedule, costs)).seconds;
}

std::size_t Planner::min_bytes(const StepPlan& unlimited, const Costs& costs) const {
  const Schedule schedule = unplanned_schedule(unlimited);
  return options_.resident_bytes + min_feasible_bytes(request_for(unlimited, schedule, costs));
}

}  // namespace cnn::lms
