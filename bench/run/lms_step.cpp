#include "bench/run/lms_step.h"

#include <utility>

#include "bench/run/fitting.h"

namespace cnn::bench {
namespace {

LmsStep step_of(const Job& job, const Backend& backend, Programs programs) {
  const DeviceMemory memory = device_memory(programs, backend);
  StepPlan unlimited = programs.main.value().plan;
  return {.programs = std::move(programs),
          .unlimited = std::move(unlimited),
          .planner = LmsPlanner(*job.config, backend, memory.variables + memory.staged)};
}

void plan(LmsStep& step, const Backend& backend) {
  step.programs.main.value().plan =
      step.planner.plan(step.unlimited, expected_costs(step.unlimited, backend), false);
}

bool may_gain(const LmsReport& report, const Job& job) {
  constexpr double far = 1.05;
  return report.necessary && report.policy == "planned" && job.compute == DataType::f32 &&
         (!report.fits || report.predicted_seconds > far * report.lower_bound_seconds);
}

}  // namespace

LmsStep plan_step(const Job& job, const Backend& backend, const Sizes& sizes, Programs programs) {
  constexpr std::size_t part = 10;  // of the arena: what is smaller does not make its peak
  LmsStep step = step_of(job, backend, std::move(programs));
  plan(step, backend);
  const LmsReport& whole = step.planner.report();
  if (!may_gain(whole, job)) {
    return step;
  }
  Sizes thrifty = sizes;
  thrifty.largest_join = step.planner.limits().device / part;
  LmsStep other = step_of(job, backend, compile_programs(job, backend, thrifty));
  if (other.unlimited.graph->nodes().size() == step.unlimited.graph->nodes().size()) {
    return step;  // none is as large
  }
  other.planner.use_joins(thrifty.largest_join, whole);
  plan(other, backend);
  const LmsReport& divided = other.planner.report();
  const bool faster = divided.predicted_seconds < whole.predicted_seconds;
  return divided.fits && (!whole.fits || faster) ? std::move(other) : std::move(step);
}

}  // namespace cnn::bench
