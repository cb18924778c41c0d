#include "bench/plan/lms_refusal.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/flags/config.h"
#include "bench/flags/number_text.h"
#include "bench/plan/device_memory.h"
#include "bench/plan/job.h"
#include "bench/ranks/rank_context.h"
#include "lms/catalog.h"
#include "runtime/active_bytes.h"

namespace cnn::bench {
namespace {

std::string amount(std::size_t bytes) {
  return fmt::format("{} ({} bytes)", bytes_text(bytes), bytes);
}

std::string there_text(const LmsPlanner& planner) {
  return fmt::format("{} are there ({})", amount(planner.budget()), planner.budget_source());
}

// Returns what every plan has on the device: variables, and batches of real data.
std::string resident_text(const LmsPlanner& planner) {
  const std::size_t resident = planner.report().resident, staged = planner.staged_bytes();
  const std::string variables = amount(resident - std::min(staged, resident));
  return staged == 0 ? fmt::format("{} of that for variables", variables)
                     : fmt::format("{} of that for variables and {} for staged input", variables,
                                   amount(staged));
}

std::string largest_op(const StepPlan& plan) {
  std::vector<std::size_t> workspaces;
  for (const KernelSpec& spec : plan.specs) {
    workspaces.push_back(spec.workspace);
  }
  const ActiveSet largest = largest_nodes(*plan.graph, workspaces, 1).at(0);
  return fmt::format("{} alone takes {}", to_string(*plan.graph, Compute{largest.node}),
                     amount(largest.bytes));
}

// Returns the flags of this run that keep tensors on the device although a plan could move them.
// The size threshold is not among them: its default may be larger, see threshold_advice().
std::vector<std::string> keeping_flags(const LmsFlags& flags, std::string_view policy) {
  const lms::Options& options = flags.options;
  std::vector<std::string> kept;
  if (options.n_tensors >= 0) {
    kept.push_back(fmt::format("--lms_n_tensors={}", options.n_tensors));
  }
  const bool recomputes = lms::find_policy(policy).recomputes;
  if (recomputes && options.recompute == lms::Recomputation::off) {
    kept.emplace_back("--lms_recompute=off");
  } else if (recomputes && options.recompute == lms::Recomputation::cheap) {
    kept.emplace_back("--lms_recompute=cheap");
  }
  if (policy == "caffe" && options.frac > 0) {
    kept.push_back(fmt::format("--lms_frac={:g}", options.frac));
  }
  if (flags.variables == LmsVariables::off) {
    kept.emplace_back("--lms_variables=off");
  }
  const std::pair<const std::vector<std::string>*, const char*> filters[] = {
      {&options.excluded_ops, "--lms_excl_ops"},
      {&options.included_ops, "--lms_incl_ops"},
      {&options.excluded_types, "--lms_excl_types"},
      {&options.included_types, "--lms_incl_types"}};
  for (const auto& [names, flag] : filters) {
    if (!names->empty()) {
      kept.emplace_back(flag);
    }
  }
  return kept;
}

// Returns the advice to leave out flags that keep tensors on the device; else nothing.
std::string flags_advice(const LmsFlags& flags, std::string_view policy) {
  const std::vector<std::string> kept = keeping_flags(flags, policy);
  return kept.empty() ? std::string()
                      : fmt::format(", or leave out {}, which let less leave the device",
                                    fmt::join(kept, ", "));
}

// Returns the advice to lower the size threshold in effect, unless it has its least value.
std::string threshold_advice(const LmsPlanner& planner) {
  constexpr std::size_t kilobyte = 1024;
  const std::size_t threshold = planner.options().size_threshold;
  return threshold <= kilobyte
             ? std::string()
             : fmt::format(
                   "; tensors of fewer than {} KB stay: a smaller --lms_size_threshold "
                   "lets more leave",
                   (threshold + kilobyte - 1) / kilobyte);
}

std::string row_slices_advice(const LmsFlags& flags, const layers::Slicing& slicing) {
  const bool are_chosen = !flags.row_slices.count && flags.variants == LmsVariants::any;
  if (are_chosen || !slicing.rows_are_worthwhile() || slicing.rows <= slicing.row_slices) {
    return {};
  }
  return fmt::format("; --lms_row_slices={} may need less: it computes images in slices",
                     std::min(std::max<std::int64_t>(8, 2 * slicing.row_slices), slicing.rows));
}

std::string dense_slices_advice(const LmsFlags& flags, const layers::Slicing& slicing) {
  const bool are_chosen = !flags.dense_slices.count && flags.variants == LmsVariants::any;
  if (are_chosen || slicing.dense_sliceable == 0 || slicing.dense_slices > 1) {
    return {};
  }
  return fmt::format("; {}--lms_dense_slices=8 may need less: it computes dense layers in slices",
                     flags.variables == LmsVariables::on ? "" : "--lms_variables=on with ");
}

// Returns the advice to give more room to what leaves, where a step could fill more than there is.
std::string host_advice(const LmsPlanner& planner, const LmsFlags& flags,
                        const RankContext& context) {
  const LmsReport& report = planner.report();
  const std::size_t room = planner.limits().host;  // through which goes what the disk takes
  if (!context.backend.has_own_memory() || report.resident + room >= report.need) {
    return {};
  }
  return fmt::format("; what leaves has {}: raise --lms_host_limit{}, which may need less",
                     amount(room), flags.disk ? "" : " or give --lms_disk a folder");
}

}  // namespace

std::string lms_refusal(const LmsPlanner& planner, const StepPlan& plan, std::size_t needed,
                        const LmsFlags& flags, const RankContext& context) {
  const LmsReport& report = planner.report();
  const std::string plan_name =
      fmt::format("the plan of {}", report.file.empty() ? report.policy : report.file);
  const std::string there = there_text(planner);
  if (report.floor > planner.budget()) {
    return fmt::format(
        "with as much away as possible a step needs {}, {}; {}; {}: use a "
        "smaller --batch_size or --image_size{}{}{}",
        amount(report.floor), resident_text(planner), largest_op(plan), there,
        flags_advice(flags, "planned"), threshold_advice(planner),  // the floor is of any plan
        host_advice(planner, flags, context));
  }
  if (report.host > 0 && !context.backend.has_own_memory()) {
    return fmt::format(
        "{} moves {} to the host, and a CPU computes in the host's memory: "
        "--device_memory_mb plays a device that tensors can leave, --lms_policy=planned computes "
        "more again",
        plan_name, amount(report.host));
  }
  if (report.host > planner.limits().host) {
    return fmt::format(
        "{} moves {} to the host, which has {} for it: raise --lms_host_limit, {}or "
        "let --lms_policy=planned compute more again",
        plan_name, amount(report.host), amount(planner.limits().host),
        flags.disk ? "" : "give --lms_disk a folder for the rest, ");
  }
  if (report.disk > planner.limits().disk) {
    return fmt::format("{} moves {} to a disk, {}", plan_name, amount(report.disk),
                       flags.disk ? fmt::format("and --lms_disk={} has {} free: use another folder",
                                                *flags.disk, amount(planner.limits().disk))
                                  : "so it needs --lms_disk with a folder");
  }
  if (report.fits) {
    return fmt::format(
        "a step fits, but evaluation and checkpoints need {}, {}: use a smaller "
        "--eval_batch_size, or --batch_size where it is not given",
        amount(needed), there);
  }
  if (!report.file.empty()) {
    return fmt::format("{} needs {}, {}: make one for this budget with --lms_plan_out", plan_name,
                       amount(needed), there);
  }
  return fmt::format("the policy {} needs {}, {}{}{}{}", report.policy, amount(needed), there,
                     report.policy == "planned" ? ": use a smaller --batch_size"
                                                : ": --lms_policy=planned may need less",
                     flags_advice(flags, report.policy), threshold_advice(planner));
}

std::string evaluation_refusal(const Job& job, const Programs& programs, const DeviceMemory& memory,
                               const LmsPlanner& planner) {
  const std::size_t needed = evaluation_bytes(programs, memory);
  if (job.config->eval.batch <= 0 || needed <= planner.budget()) {
    return {};
  }
  return fmt::format("its evaluation needs {}, {}: use a smaller --eval_batch_size", amount(needed),
                     there_text(planner));
}

std::string slices_advice(const Job& job, const layers::Slicing& slicing) {
  const LmsFlags& flags = job.config->lms;
  const bool are_chosen = !flags.slices.count && flags.variants == LmsVariants::any;
  if (are_chosen || !slicing.is_worthwhile() || job.batch.per_device <= slicing.slices) {
    return row_slices_advice(flags, slicing) + dense_slices_advice(flags, slicing);
  }
  return fmt::format("; --lms_slices={} may need less: it computes the batch in slices{}",
                     std::min(std::max<std::int64_t>(8, 2 * slicing.slices), job.batch.per_device),
                     dense_slices_advice(flags, slicing));
}

}  // namespace cnn::bench
