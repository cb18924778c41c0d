#include "bench/plan/fitting.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "bench/flags/conditions.h"
#include "bench/plan/largest_size.h"
#include "bench/plan/lms_plan.h"
#include "bench/plan/lms_step.h"
#include "bench/ranks/rank_context.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using SizesOf = std::function<Sizes(std::int64_t size)>;

// The search uses a run's minimum memory, which is cheap to compute. The plan may need more, also
// on the host: then the result lies between the largest size without a plan and the one found.
std::int64_t largest(const Fitting& fitting, std::int64_t least, std::int64_t start,
                     const SizesOf& sizes_of_size) {
  const std::int64_t found = largest_size(fitting.limit(), least, start, [&](std::int64_t size) {
    return fitting.min_bytes(sizes_of_size(size));
  });
  const auto runs = [&](std::int64_t size) { return fitting.runs(sizes_of_size(size)); };
  if (!fitting.with_lms() || found == 0 || runs(found)) {
    return found;
  }
  // Usually the guess is slightly too large.
  if (const std::int64_t near = found - std::max<std::int64_t>(found / 64, 1);
      near >= least && runs(near)) {
    return last_that_runs(near, found, runs);
  }
  const std::int64_t without = largest_size(fitting.limit(), least, start, [&](std::int64_t size) {
    return fitting.need(sizes_of_size(size));
  });
  if (without == 0 && !runs(least)) {
    return 0;
  }
  return last_that_runs(std::max(without, least), found, runs);
}

// Returns the choice of parameters on the host for a program: by size in training, else those of
// the training program, with which an evaluation shares them.
layers::IsOnHost on_host(bool is_wanted, const std::optional<Compiled>& training) {
  if (!is_wanted) {
    return {};
  }
  if (!training) {
    return
        [](const TensorInfo& info) { return info.desc.bytes() >= layers::min_host_variable_bytes; };
  }
  std::set<std::string, std::less<>> names;
  const Variables variables(*training->plan.graph);
  for (const Variable& variable : variables.all()) {
    if (variable.on_host) {
      names.insert(variable.info.name);
    }
  }
  return [names = std::move(names)](const TensorInfo& info) { return names.contains(info.name); };
}

// Those that the flag names; those of auto are tried when a step is planned.
std::int64_t slices_of(const LmsFlags& lms, std::optional<int> flag) {
  return lms.enabled ? flag.value_or(1) : 1;
}

// Returns the error of a run that is to have variables on the host and cannot.
std::string host_variables_refusal(const Job& job) {
  const std::optional<std::string>& file = job.config->lms.plan_file;
  return fmt::format(
      "{}variables lie on the host only in the training in f32 of one device with a memory of its "
      "own; {}",
      file ? fmt::format("--lms_plan_file={}: \"host_variables\" is true, but ", *file)
           : "--lms_variables=on: ",
      file ? "make one for this run with --lms_plan_out" : "use auto or off");
}

}  // namespace

bool may_host_variables(const Job& job, const RankContext& context) {
  return job.trains() && job.compute == DataType::f32 && job.ranks == 1 &&
         context.memory.host.has_value();
}

Phase main_phase(const Job& job) {
  return job.mode == Mode::forward_only ? Phase::forward_only : Phase::training;
}

Sizes sizes_of(const Job& job) {
  const LmsFlags& flags = job.config->lms;
  const bool are_on_host = flags.enabled && job.trains() && flags.variables == LmsVariables::on;
  const Sizes sizes{.batch = job.batch.per_device,
                    .eval_batch = job.eval_batch.per_device,
                    .image_size = job.image_size,
                    .slices = slices_of(flags, flags.slices.count),
                    .row_slices = slices_of(flags, flags.row_slices.count),
                    .dense_slices = are_on_host ? slices_of(flags, flags.dense_slices.count) : 1,
                    .host_variables = are_on_host};
  return flags.enabled && flags.plan_file ? with_plan(sizes, load_plan_sizes(*flags.plan_file))
                                          : sizes;
}

Sizes with_plan(Sizes sizes, const PlanSizes& plan) {
  sizes.max_fused_grad_add_bytes = plan.max_fused_grad_add_bytes;
  sizes.bucket_bytes = plan.bucket_bytes;
  sizes.slices = plan.slices;
  sizes.row_slices = plan.row_slices;
  sizes.dense_slices = plan.dense_slices;
  sizes.host_variables = plan.host_variables;
  return sizes;
}

Sizes with_batch(const Job& job, std::int64_t batch) {
  const bool follows = job.mode == Mode::evaluation || job.config->eval.batch <= 0;
  Sizes sizes = sizes_of(job);
  sizes.batch = batch;
  sizes.eval_batch = follows ? batch : sizes.eval_batch;
  return sizes;
}

Programs compile_programs(const Job& job, const RankContext& context, const Sizes& sizes) {
  Programs programs;
  std::span<const TensorInfo> fixed;
  const bool as_one = repeats_on_all_ranks(*job.config);
  check(!sizes.host_variables || may_host_variables(job, context), host_variables_refusal(job));
  const auto compile_phase = [&](Phase phase, std::int64_t batch) {
    return compile({.config = *job.config,
                    .model = *job.model,
                    .phase = phase,
                    .batch = batch,
                    .image_size = sizes.image_size,
                    .compute = job.compute,
                    .input = job.input,
                    .max_fused_grad_add_bytes = sizes.max_fused_grad_add_bytes,
                    .bucket_bytes = sizes.bucket_bytes,
                    .slices = std::min(sizes.slices, batch),
                    .row_slices = sizes.row_slices,
                    .dense_slices = sizes.dense_slices,
                    .is_on_host = on_host(sizes.host_variables, programs.main),
                    .rank = as_one ? 0 : context.rank,
                    .ranks = as_one ? 1 : context.ranks},
                   context, fixed);
  };
  if (job.mode != Mode::evaluation) {
    programs.main = compile_phase(main_phase(job), sizes.batch);
    fixed = programs.main->plan.graph->tensors();
  }
  if (job.evaluates()) {
    programs.evaluation = compile_phase(Phase::evaluation, sizes.eval_batch);
  }
  return programs;
}

Programs programs_that_fit(const Job& job, const RankContext& context, const Sizes& sizes) {
  Programs programs = compile_programs(job, context, sizes);
  const bool has_choice = programs.main && programs.main->norms.faster_plain > 0;
  if (!has_choice || job.config->lms.enabled || context.rank > 0 ||
      fits(device_memory(programs, context), context)) {
    return programs;
  }
  context.backend.tuning.forget_node_seconds();
  return compile_programs(job, context, sizes);
}

Fitting::Fitting(const Job& job, const RankContext& context, bool with_lms)
    : job_(job), context_(context), with_lms_(with_lms) {
  if (context.backend.tuning.stop) {
    context.backend.tuning.stop();  // times nothing for sizes that do not run
  }
  if (with_lms) {
    const LmsPlanner planner(*job.config, context, DeviceMemory{});
    limit_ = planner.budget();
    limit_source_ = planner.budget_source();
  } else {
    limit_ = context.memory.device;
    limit_source_ = context.memory.text;
  }
}

std::optional<std::size_t> Fitting::need(const Sizes& sizes) const {
  try {
    const DeviceMemory memory = device_memory(compile_programs(job_, context_, sizes), context_);
    const bool host_is_short = memory.host > host_bytes_left(memory, context_);
    return host_is_short ? std::nullopt : std::optional(memory.total());
  } catch (const Error&) {
    return std::nullopt;  // libraries limit operand sizes
  }
}

std::optional<std::size_t> Fitting::min_bytes(const Sizes& sizes) const {
  if (!with_lms_) {
    return need(sizes);
  }
  try {
    Programs programs = compile_programs(job_, context_, sizes);
    const DeviceMemory memory = device_memory(programs, context_);
    if (memory.total() <= limit_) {
      return memory.total();
    }
    return min_step_bytes(job_, context_, sizes, std::move(programs));
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool Fitting::runs(const Sizes& sizes) const {
  try {
    Programs programs = compile_programs(job_, context_, sizes);
    DeviceMemory memory = device_memory(programs, context_);
    if (!with_lms_) {
      return fits(memory, context_);
    }
    const LmsStep step = plan_step(job_, context_, sizes, std::move(programs));
    memory = device_memory(step.programs, context_);
    return step.planner.report().fits && memory.total() <= step.planner.budget() &&
           fits(memory, context_);
  } catch (const Error&) {
    return false;
  }
}

std::int64_t largest_batch(const Job& job, const RankContext& context, bool with_lms) {
  const Sizes now = sizes_of(job);
  return largest(Fitting(job, context, with_lms), 1,
                 job.mode == Mode::evaluation ? now.eval_batch : now.batch,
                 [&](std::int64_t batch) { return with_batch(job, batch); });
}

std::string largest_batch_text(const Job& job, const RankContext& context, bool with_lms) {
  if (const std::int64_t most = largest_batch(job, context, with_lms); most > 0) {
    return fmt::format("the largest --batch_size that fits{} is {}", with_lms ? " with --lms" : "",
                       most);
  }
  if (job.mode == Mode::training_and_evaluation && job.config->eval.batch > 0) {
    return fmt::format(
        "not even --batch_size=1 fits beside --eval_batch_size={}; use a smaller "
        "--eval_batch_size, model or --image_size",
        job.config->eval.batch);
  }
  return "not even --batch_size=1 fits; use a smaller model or --image_size";
}

std::string largest_eval_batch_text(const Job& job, const RankContext& context) {
  const std::int64_t most = largest(Fitting(job, context, /*with_lms=*/false), 1,
                                    sizes_of(job).eval_batch, [&](std::int64_t batch) {
                                      Sizes sizes = sizes_of(job);
                                      sizes.eval_batch = batch;
                                      return sizes;
                                    });
  if (most > 0) {
    return fmt::format("the largest --eval_batch_size that fits is {}", most);
  }
  return job.trains() ? fmt::format(
                            "not even --eval_batch_size=1 fits beside --batch_size={}; use a "
                            "smaller --batch_size, model or --image_size",
                            job.batch.per_device)
                      : "not even --eval_batch_size=1 fits; use a smaller model or --image_size";
}

std::int64_t largest_image(const Job& job, const RankContext& context, bool with_lms) {
  const auto at = [&](std::int64_t steps) {
    Sizes sizes = sizes_of(job);
    sizes.image_size = image_step * steps;
    return sizes;
  };
  // Networks have a minimum size: the search begins at a half, a quarter... of the job's.
  const Fitting fitting(job, context, with_lms);
  for (std::int64_t least = std::max<std::int64_t>(job.image_size / image_step, 1); least > 0;
       least /= 2) {
    const std::optional<std::size_t> bytes = fitting.min_bytes(at(least));
    if (bytes && *bytes <= fitting.limit()) {
      return image_step * largest(fitting, least, 2 * least, at);
    }
  }
  return 0;
}

}  // namespace cnn::bench
