#include "bench/plan/lms_step.h"

#include <algorithm>
#include <utility>

#include "bench/flags/lms_policy.h"
#include "bench/plan/fitting.h"

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

bool may_divide(const Job& job) {
  return policy_of(job.config->lms) == "planned" && job.compute == DataType::f32;
}

bool may_gain(const LmsReport& report) {
  constexpr double far = 1.05;
  return report.necessary &&
         (!report.fits || report.predicted_seconds > far * report.lower_bound_seconds);
}

Sizes with_smaller_joins(Sizes sizes, const LmsPlanner& planner) {
  constexpr std::size_t part = 10;  // of the arena: what is smaller does not make its peak
  sizes.largest_join = planner.limits().device / part;
  return sizes;
}

// With updates as small as they get, if then all fits.
std::optional<LmsStep> in_smallest_buckets(const Job& job, const Backend& backend,
                                           const Sizes& sizes) {
  if (sizes.bucket_bytes || bucket_bytes(*job.config, backend) <= least_bucket_bytes) {
    return std::nullopt;
  }
  Sizes small = sizes;
  small.bucket_bytes = least_bucket_bytes;
  LmsStep step = step_of(job, backend, compile_programs(job, backend, small));
  if (device_memory(step.programs, backend).total() > step.planner.budget()) {
    return std::nullopt;
  }
  step.bucket_bytes = small.bucket_bytes;
  plan(step, backend);
  return step;
}

}  // namespace

LmsStep plan_step(const Job& job, const Backend& backend, const Sizes& sizes, Programs programs) {
  LmsStep step = step_of(job, backend, std::move(programs));
  if (device_memory(step.programs, backend).total() > step.planner.budget()) {
    if (std::optional<LmsStep> small = in_smallest_buckets(job, backend, sizes)) {
      return std::move(*small);
    }
  }
  plan(step, backend);
  const LmsReport& whole = step.planner.report();
  if (!may_divide(job) || !may_gain(whole)) {
    return step;
  }
  const Sizes thrifty = with_smaller_joins(sizes, step.planner);
  LmsStep other = step_of(job, backend, compile_programs(job, backend, thrifty));
  if (other.unlimited.graph->nodes().size() == step.unlimited.graph->nodes().size()) {
    return step;  // none is as large
  }
  other.planner.use_joins(thrifty.largest_join, whole);
  plan(other, backend);
  const LmsReport& divided = other.planner.report();
  const bool faster = divided.predicted_seconds < whole.predicted_seconds;
  LmsStep& better = divided.fits && (!whole.fits || faster) ? other : step;
  LmsStep& worse = &better == &step ? other : step;
  better.planner.add_planning_seconds(worse.planner.report().planning_seconds);
  return std::move(better);
}

std::size_t least_step_bytes(const Job& job, const Backend& backend, const Sizes& sizes,
                             Programs programs) {
  const auto least_of = [&](const LmsStep& step) {
    return step.planner.least_bytes(step.unlimited, expected_costs(step.unlimited, backend));
  };
  const LmsStep step = step_of(job, backend, std::move(programs));
  const std::size_t least = least_of(step);
  if (!may_divide(job) || least <= step.planner.budget()) {
    return least;
  }
  const Sizes thrifty = with_smaller_joins(sizes, step.planner);
  return std::min(least, least_of(step_of(job, backend, compile_programs(job, backend, thrifty))));
}

}  // namespace cnn::bench
