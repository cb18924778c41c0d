#include "bench/plan/lms_step.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "bench/flags/lms_policy.h"
#include "bench/plan/fitting.h"
#include "bench/ranks/rank_context.h"

namespace cnn::bench {
namespace {

LmsStep step_of(const Job& job, const RankContext& context, Programs programs) {
  const DeviceMemory memory = device_memory(programs, context);
  StepPlan unlimited = programs.main.value().plan;
  const layers::Slicing slicing = programs.main.value().slicing;
  return {.programs = std::move(programs),
          .unlimited = std::move(unlimited),
          .planner = LmsPlanner(*job.config, context, memory, slicing)};
}

void plan(LmsStep& step, const RankContext& context) {
  step.programs.main.value().plan =
      step.planner.plan(step.unlimited, expected_costs(step.unlimited, context.backend), false);
}

bool may_divide(const Job& job) {
  return policy_of(job.config->lms) == "planned" && job.compute == DataType::f32;
}

// Equal for all budgets, so that a larger budget is never planned on another step: a tenth of the
// smallest arena, since smaller sums do not determine its peak.
Sizes with_smaller_joins(Sizes sizes, const LmsReport& report) {
  constexpr std::size_t part = 10;
  sizes.max_fused_grad_add_bytes = (report.floor - report.resident) / part;
  return sizes;
}

bool fits(const LmsStep& step, const RankContext& context) {
  return device_memory(step.programs, context).total() <= step.planner.budget();
}

// Returns the step of these sizes. If it does not fit unplanned, it has the smallest updates for
// every budget: gradients wait in memory for the last one of their update.
LmsStep step_for_lms(const Job& job, const RankContext& context, const Sizes& sizes,
                     Programs programs) {
  LmsStep step = step_of(job, context, std::move(programs));
  if (sizes.bucket_bytes || fits(step, context)) {
    return step;
  }
  Sizes small = sizes;
  small.bucket_bytes = min_bucket_bytes;
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
  step.planner.use_max_fused_grad_add(divided.max_fused_grad_add_bytes, report);
  plan(step, context);
  return step;
}

// Where neither fits, the one with the smaller floor is better: the refusal names the least memory
// that any step needs.
bool is_better(const LmsReport& a, const LmsReport& b) {
  if (a.fits != b.fits) {
    return a.fits;
  }
  return a.fits ? a.predicted_seconds < b.predicted_seconds : a.floor < b.floor;
}

// The step, planned with whichever joins are faster.
LmsStep with_best_joins(const Job& job, const RankContext& context, const Sizes& sizes,
                        LmsStep step) {
  plan(step, context);
  std::optional<LmsStep> divided = with_divided_joins(job, context, sizes, step);
  return divided && is_better(divided->planner.report(), step.planner.report())
             ? std::move(*divided)
             : std::move(step);
}

// The sizes of the same step in slices of its batch, then of its images, that the planner chooses
// from; none where the flags leave no choice. They do not depend on the budget.
std::vector<Sizes> sliced_forms(const Job& job, const Sizes& sizes) {
  constexpr std::int64_t candidates[] = {2, 4, 8, 16};
  const LmsFlags& flags = job.config->lms;
  std::vector<Sizes> forms;
  if (flags.variants == LmsVariants::same || flags.plan_file) {
    return forms;
  }
  for (const std::int64_t slices : candidates) {
    if (!flags.slices.count && slices <= sizes.batch) {
      forms.push_back(sizes);
      forms.back().slices = slices;
    }
  }
  for (const std::int64_t slices : candidates) {
    if (!flags.row_slices.count) {
      forms.push_back(sizes);
      forms.back().row_slices = slices;
    }
  }
  return forms;
}

// Returns the step in slices; nothing if it has none, or fewer than the form says. Norms in slices
// take minutes to plan, so they are left out where another form fits.
std::optional<LmsStep> sliced_step(const Job& job, const RankContext& context, const Sizes& form,
                                   bool another_fits) {
  Programs programs = compile_programs(job, context, form);
  const layers::Slicing& slicing = programs.main.value().slicing;
  const bool as_wanted =
      (form.slices == 1 || slicing.is_sliced()) &&
      (job.config->lms.row_slices.count || form.row_slices == slicing.row_slices_made());
  if (!as_wanted || (slicing.norms && another_fits)) {
    return std::nullopt;
  }
  return step_for_lms(job, context, form, std::move(programs));
}

std::size_t min_bytes_of(const Job& job, const RankContext& context, const Sizes& sizes,
                         const LmsStep& step) {
  const auto min_of = [&](const LmsStep& one) {
    return one.planner.min_bytes(one.unlimited, expected_costs(one.unlimited, context.backend));
  };
  const std::size_t least = min_of(step);
  if (!may_divide(job) || least <= step.planner.budget()) {
    return least;
  }
  LmsReport report;
  report.resident = step.planner.resident_bytes();
  report.floor = least;
  Sizes divided = with_smaller_joins(sizes, report);
  divided.bucket_bytes = step.bucket_bytes ? step.bucket_bytes : sizes.bucket_bytes;
  return std::min(least, min_of(step_of(job, context, compile_programs(job, context, divided))));
}

// Returns the fastest plan of the step in all forms with variables where these sizes have them.
// reference: of the step without LMS, if that has other sizes.
LmsStep plan_forms(const Job& job, const RankContext& context, const Sizes& sizes,
                   Programs programs, const LmsReport* reference = nullptr) {
  LmsStep best = step_for_lms(job, context, sizes, std::move(programs));
  if (reference != nullptr) {
    best.planner.compare_with(*reference);
  }
  best = with_best_joins(job, context, sizes, std::move(best));
  const LmsReport whole = best.planner.report();
  std::vector<LmsReport> others{whole};
  for (const Sizes& form : sliced_forms(job, sizes)) {
    const LmsReport& report = best.planner.report();
    std::optional<LmsStep> step = sliced_step(job, context, form, report.fits);
    // A form whose lower bound is not below the time of a plan already found cannot be faster.
    if (!step || (report.fits && lower_bound_seconds(*step, context) >= report.predicted_seconds)) {
      continue;
    }
    step->planner.compare_with(whole);
    step = with_best_joins(job, context, form, std::move(*step));
    others.push_back(step->planner.report());
    if (is_better(step->planner.report(), best.planner.report())) {
      best = std::move(*step);
    }
  }
  for (std::size_t i = 0; others.size() > 1 && i < others.size(); ++i) {
    best.planner.include_form(others[i]);
  }
  return best;
}

// Returns the sizes of the same step with the largest parameters on the host, then with their dense
// layers in slices too: the forms that the planner may choose beyond these sizes.
std::vector<Sizes> hosted_forms(const Job& job, const RankContext& context, const Sizes& sizes) {
  constexpr std::int64_t dense_slices = 8;
  const LmsFlags& flags = job.config->lms;
  std::vector<Sizes> forms;
  if (flags.plan_file || policy_of(flags) != "planned" || !may_host_variables(job, context) ||
      (!sizes.host_variables && flags.variables != LmsVariables::automatic)) {
    return forms;
  }
  Sizes hosted = sizes;
  hosted.host_variables = true;
  if (!sizes.host_variables) {
    forms.push_back(hosted);
  }
  if (!flags.dense_slices.count && flags.variants == LmsVariants::any) {
    hosted.dense_slices = dense_slices;
    forms.push_back(hosted);
  }
  return forms;
}

// Returns the programs of such a form; nothing where no parameter is large enough for it.
std::optional<Programs> hosted_programs(const Job& job, const RankContext& context,
                                        const Sizes& sizes, const Sizes& form) {
  Programs programs = compile_programs(job, context, form);
  const bool is_other =
      form.dense_slices == sizes.dense_slices || programs.main.value().slicing.is_dense_sliced();
  return is_other && programs.variables().host_bytes() > 0 ? std::optional(std::move(programs))
                                                           : std::nullopt;
}

std::size_t min_bytes_of_forms(const Job& job, const RankContext& context, const Sizes& sizes,
                               Programs programs, std::size_t budget) {
  const LmsStep step = step_for_lms(job, context, sizes, std::move(programs));
  std::size_t least = min_bytes_of(job, context, sizes, step);
  for (const Sizes& form : sliced_forms(job, sizes)) {
    if (least <= budget) {
      break;
    }
    if (const std::optional<LmsStep> sliced = sliced_step(job, context, form, false)) {
      least = std::min(least, min_bytes_of(job, context, form, *sliced));
    }
  }
  return least;
}

}  // namespace

LmsStep plan_step(const Job& job, const RankContext& context, const Sizes& sizes,
                  Programs programs) {
  LmsStep best = plan_forms(job, context, sizes, std::move(programs));
  const LmsReport& first = best.planner.report();
  if (first.fits && (!sizes.host_variables || !first.necessary)) {
    return best;
  }
  for (const Sizes& form : hosted_forms(job, context, sizes)) {
    if (std::optional<Programs> moved = hosted_programs(job, context, sizes, form)) {
      const LmsReport without = best.planner.report();
      LmsStep step = plan_forms(job, context, form, *std::move(moved), &without);
      if (is_better(step.planner.report(), without)) {
        best = std::move(step);
      }
      best.planner.include_form(without);
    }
  }
  return best;
}

std::size_t min_step_bytes(const Job& job, const RankContext& context, const Sizes& sizes,
                           Programs programs) {
  const std::size_t budget = LmsPlanner(*job.config, context, DeviceMemory{}).budget();
  std::size_t least = min_bytes_of_forms(job, context, sizes, std::move(programs), budget);
  for (const Sizes& form : hosted_forms(job, context, sizes)) {
    if (least <= budget) {
      break;
    }
    if (std::optional<Programs> moved = hosted_programs(job, context, sizes, form)) {
      least = std::min(least, min_bytes_of_forms(job, context, form, *std::move(moved), budget));
    }
  }
  return least;
}

}  // namespace cnn::bench
