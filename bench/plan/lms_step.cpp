#include "bench/plan/lms_step.h"

#include <algorithm>
#include <utility>

#include "bench/flags/lms_policy.h"
#include "bench/plan/fitting.h"
#include "bench/ranks/rank_context.h"

namespace cnn::bench {
namespace {

LmsStep step_of(const Job& job, const RankContext& context, Programs programs) {
  const DeviceMemory memory = device_memory(programs, context);
  StepPlan unlimited = programs.main.value().plan;
  return {.programs = std::move(programs),
          .unlimited = std::move(unlimited),
          .planner = LmsPlanner(*job.config, context, memory.variables + memory.staged)};
}

void plan(LmsStep& step, const RankContext& context) {
  step.programs.main.value().plan =
      step.planner.plan(step.unlimited, expected_costs(step.unlimited, context.backend), false);
}

bool may_divide(const Job& job) {
  return policy_of(job.config->lms) == "planned" && job.compute == DataType::f32;
}

// The same for all budgets, so that a larger one is never planned on another step: a tenth of the
// smallest arena, since what is smaller does not make its peak.
Sizes with_smaller_joins(Sizes sizes, const LmsReport& report) {
  constexpr std::size_t part = 10;
  sizes.max_fused_grad_add_bytes = (report.floor - report.resident) / part;
  return sizes;
}

bool fits(const LmsStep& step, const RankContext& context) {
  return device_memory(step.programs, context).total() <= step.planner.budget();
}

// The step of these sizes. One that does not fit as it is has the smallest updates, whatever the
// budget: gradients wait in memory for the last of their update.
LmsStep step_for_lms(const Job& job, const RankContext& context, const Sizes& sizes,
                     Programs programs) {
  LmsStep step = step_of(job, context, std::move(programs));
  if (sizes.bucket_bytes || fits(step, context)) {
    return step;
  }
  Sizes small = sizes;
  small.bucket_bytes = least_bucket_bytes;
  step = step_of(job, context, compile_programs(job, context, small));
  step.bucket_bytes = small.bucket_bytes;
  return step;
}

double lower_bound_seconds(const LmsStep& step, const RankContext& context) {
  return step.planner.lower_bound_seconds(step.unlimited,
                                          expected_costs(step.unlimited, context.backend));
}

// The step with the largest gradients joined in nodes of their own, planned, unless its lower bound
// says that it cannot be faster than the plan of the whole step.
std::optional<LmsStep> with_divided_joins(const Job& job, const RankContext& context,
                                          const Sizes& sizes, const LmsStep& whole) {
  const LmsReport& report = whole.planner.report();
  if (!may_divide(job) || !report.necessary) {
    return std::nullopt;
  }
  Sizes divided = with_smaller_joins(sizes, report);
  divided.bucket_bytes = whole.bucket_bytes ? whole.bucket_bytes : sizes.bucket_bytes;
  LmsStep step = step_of(job, context, compile_programs(job, context, divided));
  step.bucket_bytes = whole.bucket_bytes;
  const bool differs =
      step.unlimited.graph->nodes().size() != whole.unlimited.graph->nodes().size();
  if (!differs || (report.fits && lower_bound_seconds(step, context) >= report.predicted_seconds)) {
    return std::nullopt;
  }
  step.planner.use_joins(divided.max_fused_grad_add_bytes, report);
  plan(step, context);
  return step;
}

}  // namespace

LmsStep plan_step(const Job& job, const RankContext& context, const Sizes& sizes,
                  Programs programs) {
  LmsStep step = step_for_lms(job, context, sizes, std::move(programs));
  plan(step, context);
  if (std::optional<LmsStep> divided = with_divided_joins(job, context, sizes, step)) {
    const LmsReport& whole = step.planner.report();
    const LmsReport& report = divided->planner.report();
    // Where neither fits, the refusal names the least memory that any step needs.
    const bool better = report.fits
                            ? !whole.fits || report.predicted_seconds < whole.predicted_seconds
                            : !whole.fits && report.floor < whole.floor;
    if (better) {
      step = std::move(*divided);
    }
  }
  return step;
}

std::size_t least_step_bytes(const Job& job, const RankContext& context, const Sizes& sizes,
                             Programs programs) {
  const LmsStep step = step_for_lms(job, context, sizes, std::move(programs));
  const auto least_of = [&](const LmsStep& one) {
    return one.planner.least_bytes(one.unlimited, expected_costs(one.unlimited, context.backend));
  };
  const std::size_t least = least_of(step);
  if (!may_divide(job) || least <= step.planner.budget()) {
    return least;
  }
  LmsReport report;
  report.resident = step.planner.resident_bytes();
  report.floor = least;
  Sizes divided = with_smaller_joins(sizes, report);
  divided.bucket_bytes = step.bucket_bytes ? step.bucket_bytes : sizes.bucket_bytes;
  return std::min(least, least_of(step_of(job, context, compile_programs(job, context, divided))));
}

}  // namespace cnn::bench
