#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lms/options.h"
#include "lms/policy.h"
#include "lms/stalls.h"
#include "lms/summary.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::lms {

// A planned step, its predicted memory and time, and the bounds of both. Bytes are device bytes:
// variables and arena together; seconds are simulated.
struct PlanReport {
  bool necessary = false;     // the step does not fit without a plan
  bool fits = true;           // the planned step fits
  std::size_t budget = 0;     // bytes for the step
  std::size_t need = 0;       // of the step without a plan
  std::size_t floor = 0;      // the smallest budget for which a plan is known
  std::size_t resident = 0;   // variables and staged data, included in all of these
  std::size_t peak = 0;       // of the planned step, as placed in memory
  std::size_t live_peak = 0;  // live bytes of its fullest step: no placement takes less
  std::size_t host = 0;       // pinned host bytes for swapped tensors
  std::size_t disk = 0;       // bytes of the file for those that the host has no room for
  std::size_t kept = 0;       // candidates that stay on the device until their last use
  Summary summary;
  double compute_seconds = 0;    // of all nodes of lane compute, each once
  double recompute_seconds = 0;  // of recomputed nodes
  Timeline timeline;             // of the planned step
  double predicted_seconds = 0;  // its end
  Stalls predicted_stalls;
  double lower_bound_seconds = 0;    // see bound.h
  std::vector<Note> notes;           // of the policy
  std::optional<Reclaims> reclaims;  // of the policy, if it replays an allocator
};

// The resources that a planner may use: the budget includes the resident bytes.
struct PlannerOptions {
  std::string policy;  // a name of catalog.h
  Options options;
  std::size_t budget = 0;          // device bytes for variables and arena
  std::size_t resident_bytes = 0;  // variables and staged data
  std::size_t host_bytes = 0;      // pinned memory for what is swapped out
  std::size_t disk_bytes = 0;      // of a file behind it; 0: none
  StopCheck stopped = nullptr;     // ends a search with PlanningStopped
};

// Plans training steps within one budget: asks the policy for a schedule, places it in memory and
// predicts its memory and time.
class Planner {
 public:
  explicit Planner(PlannerOptions options);

  const PlannerOptions& options() const { return options_; }
  const Budget& limits() const { return limits_; }  // of the arena

  // Plans the step by the policy's rules. Where nothing fits, the plan takes more than the budget
  // and report().fits is false. A search spends no time on plans of `useful_seconds` and more.
  // Throws Error where options cannot be obeyed.
  StepPlan plan(const StepPlan& unlimited, const Costs& costs,
                double useful_seconds = std::numeric_limits<double>::infinity());
  // Plans the step by a schedule from elsewhere, placed as plan_memory() does with so many bytes as
  // enough. Throws Error if the schedule is not one of this step.
  StepPlan plan_by(const Schedule& schedule, std::size_t enough, const StepPlan& unlimited,
                   const Costs& costs);

  const PlanReport& report() const { return report_; }    // of the latest plan
  std::size_t enough() const { return enough_; }          // of plan_memory(), for the latest plan
  const Schedule& schedule() const { return schedule_; }  // of the latest plan, without links
  double policy_seconds() const { return policy_seconds_; }  // wall time of the latest search

  // Seconds that no plan of the step can be faster than within the budget; see bound.h.
  double lower_bound_seconds(const StepPlan& unlimited, const Costs& costs) const;

  // Bytes of the device that the plan with the smallest peak takes, variables included.
  std::size_t min_bytes(const StepPlan& unlimited, const Costs& costs) const;

 private:
  Schedule unplanned_schedule(const StepPlan& unlimited) const;
  Request request_for(const StepPlan& unlimited, const Schedule& schedule,
                      const Costs& costs) const;  // refers to all three
  void start_report(const StepPlan& unlimited, const Costs& costs);
  StepPlan place(const StepPlan& unlimited, const Request& request);

  PlannerOptions options_;
  Budget limits_;
  // Arena bytes of the plan with the smallest peak. They are independent of costs, so they are
  // computed once. 0: not computed yet.
  std::size_t floor_ = 0;
  PlanReport report_;
  Schedule schedule_;
  std::size_t enough_ = 0;
  double policy_seconds_ = 0;
};

// Simulates the planned step with these costs and writes time and stalls to the report.
void predict(PlanReport& report, const StepPlan& plan, const Costs& costs);

// Returns the seconds of the nodes that the schedule runs again.
double recompute_seconds(const Graph& graph, const Schedule& schedule, const Costs& costs);

}  // namespace cnn::lms
