#include <string>
#include <vector>

#include "bench/flags/conditions.h"
#include "bench/flags/flag_table.h"
#include "bench/flags/lms_policy.h"
#include "lms/catalog.h"

namespace cnn::bench {

namespace {

using enum FlagSupport;
using enum Type;

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const lms::PolicyRow& row : lms::policies()) {
    names.emplace_back(row.name);
  }
  return names;
}

constexpr Member policy_member = [] {
  Member member = at<&Config::lms, &LmsFlags::policy>;
  member.words = policy_names;
  return member;
}();

constexpr std::string_view needs_lms = "flags --lms_... act with --lms only";
constexpr NoEffectRule no_lms{[](const Config& c) { return !c.lms.enabled; }, needs_lms};
constexpr NoEffectRule no_debug{[](const Config& c) { return c.lms.enabled && !c.lms.debug; },
                                "--lms_debug_level acts with --lms_debug only"};
bool has_plan(const Config& c) { return c.lms.enabled && c.lms.plan_file.has_value(); }

// Returns whether a plan is made, but not by that policy.
bool plans_without(std::string_view policy, const Config& c) {
  return c.lms.enabled && !has_plan(c) && policy_of(c.lms) != policy;
}

constexpr NoEffectRule fixed_plan{
    has_plan,
    "flags that choose a plan (--lms_policy, --lms_n_tensors, --lms_sync_mode, --lms_recompute, "
    "--lms_size_threshold, --lms_variables, --lms_excl_..., --lms_incl_... and "
    "those of one policy) do nothing beside --lms_plan_file, whose plan runs as it is"};
constexpr NoEffectRule no_caffe{[](const Config& c) { return plans_without("caffe", c); },
                                "--lms_frac acts with --lms_policy=caffe only"};
constexpr NoEffectRule no_tflms1{
    [](const Config& c) { return plans_without("tflms1", c); },
    "--lms_lb, --lms_ub, --lms_fuse_swapins, --lms_swap_branches, --lms_branch_threshold and "
    "--lms_ctrld_strategy act with --lms_policy=tflms1 only"};
constexpr NoEffectRule no_tflms2{
    [](const Config& c) { return plans_without("tflms2", c); },
    "--lms_swapout_threshold, --lms_swapin_ahead and --lms_swapin_groupby act with "
    "--lms_policy=tflms2 only"};
constexpr NoEffectRule no_variants{
    [](const Config& c) {
      return c.lms.enabled && !c.lms.slices.count && c.lms.variants == LmsVariants::same;
    },
    "--lms_slices=auto slices with --lms_variants=any only, since slices sum gradients in another "
    "order; --lms_slices=N slices without"};
constexpr NoEffectRule no_row_variants{
    [](const Config& c) {
      return c.lms.enabled && !c.lms.row_slices.count && c.lms.variants == LmsVariants::same;
    },
    "--lms_row_slices=auto slices with --lms_variants=any only, since slices sum gradients in "
    "another order; --lms_row_slices=N slices without"};
constexpr NoEffectRule no_dense_variants{
    [](const Config& c) {
      return c.lms.enabled && !c.lms.dense_slices.count && c.lms.variants == LmsVariants::same;
    },
    "--lms_dense_slices=auto slices with --lms_variants=any only, since slices sum products in "
    "another order; --lms_dense_slices=N slices without"};
constexpr NoEffectRule no_host_variables{
    [](const Config& c) {
      const bool may_choose =
          c.lms.variables == LmsVariables::automatic && !c.lms.dense_slices.count;
      return c.lms.enabled && c.lms.variables != LmsVariables::on && !may_choose;
    },
    "--lms_dense_slices acts on variables on the host: with --lms_variables=on, and as auto with "
    "--lms_variables=auto too"};
constexpr NoEffectRule no_choice{
    [](const Config& c) {
      return c.lms.enabled && c.lms.slices.count && c.lms.row_slices.count &&
             c.lms.dense_slices.count.has_value();
    },
    "--lms_variants acts with --lms_slices=auto, --lms_row_slices=auto or --lms_dense_slices=auto "
    "only"};
constexpr NoEffectRule no_training{
    trains_nothing,
    "--lms moves what training keeps for its backward pass: --forward_only and --eval have none "
    "and run as without it"};
constexpr NoEffectRule no_network{[](const Config& c) { return c.data.input_only; },
                                  "--input_only computes nothing: flags --lms_... do nothing"};
constexpr NoEffectRule no_kept_plan{
    [](const Config& c) { return c.lms.enabled && c.search.any(); },
    "a search for a size keeps no plan: --lms_plan_out, --lms_trace and --lms_debug do nothing"};
constexpr NoEffectRule no_stats{
    [](const Config& c) { return c.lms.enabled && !c.lms.stats && !c.lms.stats_average; },
    "--output_dir is where --lms_stats and --lms_stats_average write"};
constexpr NoEffectRule no_average{
    [](const Config& c) { return c.lms.enabled && !c.lms.stats_average; },
    "--lms_stats_warmup_steps acts with --lms_stats_average only"};
constexpr NoEffectRule no_device{
    [](const Config& c) { return !c.lms.device_memory_mb || c.device != DeviceKind::cpu; },
    "--emulate_link_gbps acts with --device_memory_mb on a CPU only"};
constexpr NoEffectRule no_cpu{[](const Config& c) { return c.device != DeviceKind::cpu; },
                              "--device_memory_mb acts on a CPU only; use --lms_limit"};

constexpr NoEffectRule no_host_tier{
    [](const Config& c) {
      return c.lms.enabled && c.device == DeviceKind::cpu && !c.lms.device_memory_mb;
    },
    "--lms_disk acts behind a device with memory of its own: a GPU, or a CPU with "
    "--device_memory_mb"};

constexpr Flag lms_rows[] = {
    {.name = "lms",
     .help = "train what does not fit: move activations to host memory and back, or compute them "
             "again",
     .member = &at<&Config::lms, &LmsFlags::enabled>,
     .no_effect = {no_training, no_network}},
    {.name = "lms_policy",
     .help = "who decides what moves: our planner, or a policy of another system; unset = planned, "
             "or tflms1 or tflms2 where their flags are set",
     .member = &policy_member,
     .no_effect = {no_lms, fixed_plan}},
    {.name = "lms_plan_out",
     .help = "write the plan to this file: its steps in their order, readable, for --lms_plan_file",
     .member = &at<&Config::lms, &LmsFlags::plan_out>,
     .no_effect = {no_lms, no_kept_plan}},
    {.name = "lms_plan_file",
     .help = "run by the plan of this file, made for the same step, instead of making one",
     .member = &at<&Config::lms, &LmsFlags::plan_file>,
     .no_effect = {no_lms}},
    {.name = "lms_n_tensors",
     .help = "how many tensors may move, in the order of the policy; -1 = all, 0 = none",
     .range = at_least(-1),
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::n_tensors>,
     .no_effect = {no_lms, fixed_plan}},
    {.name = "lms_sync_mode",
     .help = "0 asynchronous, 1 computing waits for swap-outs, 2 for swap-ins, 3 for both",
     .range = between(0, 3),
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::sync_mode>,
     .no_effect = {no_lms, fixed_plan}},
    {.name = "lms_recompute",
     .help = "what may be computed again: auto, off, cheap (element-wise ops, norms, pools), full",
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::recompute>,
     .no_effect = {no_lms, fixed_plan}},
    {.name = "lms_slices",
     .help =
         "compute the part of the network up to the first dense layer in so many slices along the "
         "batch, which lowers the least memory; auto = 1, 2, 4, 8 or 16, whichever is fastest in "
         "the budget",
     .member = &at<&Config::lms, &LmsFlags::slices>,
     .no_effect = {no_lms, no_variants}},
    {.name = "lms_row_slices",
     .help = "compute the part of the network that maps windows of pixels in so many slices along "
             "the rows of the images, for images that are too large even alone; auto = 1, 2, 4, 8 "
             "or 16, whichever is fastest in the budget",
     .member = &at<&Config::lms, &LmsFlags::row_slices>,
     .no_effect = {no_lms, no_row_variants}},
    {.name = "lms_dense_slices",
     .help = "compute dense layers whose weights --lms_variables puts into host memory in so many "
             "slices of their inputs, so that neither weights nor gradients are whole on the "
             "device; auto = 1 or 8, whichever is faster in the budget",
     .member = &at<&Config::lms, &LmsFlags::dense_slices>,
     .no_effect = {no_lms, no_dense_variants, no_host_variables}},
    {.name = "lms_variants",
     .help = "forms of the step that the planner may choose from: same = those with the bits of "
             "the step without --lms, any = also others, such as --lms_slices=auto",
     .member = &at<&Config::lms, &LmsFlags::variants>,
     .no_effect = {no_lms, no_choice}},
    {.name = "lms_variables",
     .help = "the largest parameters of dense layers and their optimizer slots in host memory, "
             "loaded where they are used and updated in slices, to the same bits: off, on, auto = "
             "where no plan fits otherwise",
     .member = &at<&Config::lms, &LmsFlags::variables>,
     .no_effect = {no_lms, fixed_plan}},
    {.name = "lms_size_threshold",
     .help = "tensors of fewer KB stay; unset = 1024, for the policy caffe 1000, divided by the "
             "slices of --lms_slices and --lms_row_slices",
     .range = at_least(1),
     .member = &at<&Config::lms, &LmsFlags::size_threshold>,
     .no_effect = {no_lms, fixed_plan}},
    {.name = "lms_limit",
     .help = "memory in MB that the run may take on its device; 0 = what is free",
     .range = at_least(0),
     .member = &at<&Config::lms, &LmsFlags::limit>,
     .no_effect = {no_lms}},
    {.name = "lms_exclude",
     .help = "memory in MB that is left free on the device",
     .range = at_least(0),
     .member = &at<&Config::lms, &LmsFlags::exclude>,
     .no_effect = {no_lms}},
    {.name = "lms_mem_ratio",
     .help = "share of the device's memory to plan with, a safety factor; with tflms2 the share of "
             "what variables leave that its simulation may use",
     .range = between(0.01, 1),
     .member = &at<&Config::lms, &LmsFlags::mem_ratio>,
     .no_effect = {no_lms}},
    {.name = "lms_frac",
     .help = "policy caffe: nothing moves until this share of the memory is asked for",
     .range = between(0, 1),
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::frac>,
     .no_effect = {no_lms, no_caffe, fixed_plan}},
    {.name = "lms_host_limit",
     .help = "host memory in MB for what moves; 0 or unset = 80 % of what is free, or what "
             "TF_GPU_HOST_MEM_LIMIT_IN_MB says",
     .range = at_least(0),
     .member = &at<&Config::lms, &LmsFlags::host_limit>,
     .no_effect = {no_lms}},
    {.name = "lms_disk",
     .help = "folder for a temporary file that takes what the host has no room for; its speed is "
             "measured at start and planned with",
     .member = &at<&Config::lms, &LmsFlags::disk>,
     .no_effect = {no_lms, no_host_tier}},
    {.name = "lms_excl_ops",
     .help = "tensors whose names match one of these regular expressions stay",
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::excluded_ops>,
     .no_effect = {no_lms, fixed_plan}},
    {.name = "lms_incl_ops",
     .help = "only tensors whose names match one of these regular expressions move",
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::included_ops>,
     .no_effect = {no_lms, fixed_plan}},
    {.name = "lms_excl_types",
     .help = "what ops of these types make stays: regular expressions",
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::excluded_types>,
     .no_effect = {no_lms, fixed_plan}},
    {.name = "lms_incl_types",
     .help = "only what ops of these types make moves: regular expressions",
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::included_types>,
     .no_effect = {no_lms, fixed_plan}},
    {.name = "lms_simulate_only",
     .help = "print the plan, its peak, step time and bound, and train nothing",
     .member = &at<&Config::lms, &LmsFlags::simulate_only>,
     .no_effect = {no_lms}},
    {.name = "lms_trace",
     .help = "write a timed step as planned and as measured to this file, as a Chrome trace; where "
             "no step runs, as planned",
     .member = &at<&Config::lms, &LmsFlags::trace>,
     .no_effect = {no_lms, no_kept_plan}},
    {.name = "lms_verify",
     .help = "fill bytes that are free with NaNs and compare what comes back from the host with "
             "what left; slow",
     .member = &at<&Config::lms, &LmsFlags::verify>,
     .no_effect = {no_lms},
     .needs_steps = true},
    {.name = "lms_stats",
     .help = "a line for each step in OUTPUT_DIR/MODEL_lms_stats.csv: time, blocks of the arena, "
             "tensors and GiB that left",
     .member = &at<&Config::lms, &LmsFlags::stats>,
     .no_effect = {no_lms},
     .needs_steps = true},
    {.name = "lms_stats_average",
     .help = "a line for the run, behind those of earlier ones, in "
             "OUTPUT_DIR/MODEL_lms_stats_average.csv: megapixels a second and means",
     .member = &at<&Config::lms, &LmsFlags::stats_average>,
     .no_effect = {no_lms},
     .needs_steps = true},
    {.name = "lms_stats_warmup_steps",
     .help = "timed steps that --lms_stats_average leaves out",
     .range = at_least(0),
     .member = &at<&Config::lms, &LmsFlags::stats_warmup_steps>,
     .no_effect = {no_lms, no_average}},
    {.name = "output_dir",
     .help = "folder of --lms_stats and --lms_stats_average",
     .member = &at<&Config::lms, &LmsFlags::output_dir>,
     .no_effect = {no_lms, no_stats}},
    {.name = "lms_debug",
     .help = "a line for each tensor",
     .member = &at<&Config::lms, &LmsFlags::debug>,
     .no_effect = {no_lms, no_kept_plan}},
    {.name = "lms_debug_level",
     .help = "of --lms_debug: 1 or 2",
     .range = between(1, 2),
     .member = &at<&Config::lms, &LmsFlags::debug_level>,
     .no_effect = {no_lms, no_debug}},
    {"lms_serialization", text, "", accepted, "one stream computes, so levels never overlap",
     "levels whose ops run one after another"},
    {"lms_serialization_by_size", real, "0", accepted,
     "one stream computes, so levels never overlap",
     "levels of more GiB run their ops one after another", at_least(0)},
};

constexpr Flag policy_rows[] = {
    {.name = "lms_lb",
     .help = "tflms1: a swap-in is triggered at least so many nodes before its reader",
     .range = at_least(1),
     .member =
         &at<&Config::lms, &LmsFlags::options, &lms::Options::tflms1, &lms::Tflms1Options::lb>,
     .no_effect = {no_lms, no_tflms1, fixed_plan}},
    {.name = "lms_ub",
     .help = "tflms1: and at most so many",
     .range = at_least(1),
     .member =
         &at<&Config::lms, &LmsFlags::options, &lms::Options::tflms1, &lms::Tflms1Options::ub>,
     .no_effect = {no_lms, no_tflms1, fixed_plan}},
    {.name = "lms_fuse_swapins",
     .help = "tflms1: one swap-in for all readers of a tensor",
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::tflms1,
                   &lms::Tflms1Options::fuse_swapins>,
     .no_effect = {no_lms, no_tflms1, fixed_plan}},
    {.name = "lms_swap_branches",
     .help = "tflms1: swap for far readers of the forward pass too",
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::tflms1,
                   &lms::Tflms1Options::swap_branches>,
     .no_effect = {no_lms, no_tflms1, fixed_plan}},
    {.name = "lms_branch_threshold",
     .help = "tflms1: how far far is",
     .range = at_least(0),
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::tflms1,
                   &lms::Tflms1Options::branch_threshold>,
     .no_effect = {no_lms, no_tflms1, fixed_plan}},
    {.name = "lms_ctrld_strategy",
     .help = "tflms1: how the trigger of a swap-in is found",
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::tflms1,
                   &lms::Tflms1Options::ctrld_strategy>,
     .no_effect = {no_lms, no_tflms1, fixed_plan}},
    {.name = "lms_swapout_threshold",
     .help = "tflms2: distance from producer to reader above which a tensor moves; -1 = found",
     .range = at_least(-1),
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::tflms2,
                   &lms::Tflms2Options::swapout_threshold>,
     .no_effect = {no_lms, no_tflms2, fixed_plan}},
    {.name = "lms_swapin_ahead",
     .help = "tflms2: levels by which a swap-in precedes its reader; -1 = found",
     .range = at_least(-1),
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::tflms2,
                   &lms::Tflms2Options::swapin_ahead>,
     .no_effect = {no_lms, no_tflms2, fixed_plan}},
    {.name = "lms_swapin_groupby",
     .help = "tflms2: readers closer than this share one swap-in; -1 = found",
     .range = at_least(-1),
     .member = &at<&Config::lms, &LmsFlags::options, &lms::Options::tflms2,
                   &lms::Tflms2Options::swapin_groupby>,
     .no_effect = {no_lms, no_tflms2, fixed_plan}},
};

constexpr Flag cpu_device_rows[] = {
    {.name = "device_memory_mb",
     .help = "memory in MB of a CPU that plays a device with a memory of its own; tensors move "
             "between it and the rest",
     .range = at_least(1),
     .member = &at<&Config::lms, &LmsFlags::device_memory_mb>,
     .no_effect = {no_cpu}},
    {.name = "emulate_link_gbps",
     .help = "of that device: 10^9 bytes a second out[,in[,both at once]]; ranks of one machine "
             "divide it",
     .member = &at<&Config::lms, &LmsFlags::emulate_link_gbps>,
     .no_effect = {no_device}},
};

}  // namespace

std::vector<FlagGroup> lms_flags() {
  return {{"lms", "Large models", lms_rows},
          {"lms_policies", "Policies of other systems", policy_rows},
          {"lms_device", "A CPU as a device of its own", cpu_device_rows}};
}

}  // namespace cnn::bench
