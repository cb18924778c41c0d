#include "bench/flags/flag_rules.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <string_view>
#include <vector>

#include "bench/flags/conditions.h"
#include "bench/flags/fault_spec.h"
#include "bench/flags/file_rules.h"
#include "bench/flags/flag_table.h"
#include "bench/flags/gpu_indices.h"
#include "bench/flags/lms_policy.h"
#include "bench/flags/reduce_spec.h"
#include "bench/flags/sizes.h"
#include "lms/stash.h"
#include "models/learning_rate.h"
#include "runtime/error.h"

namespace cnn::bench {

namespace {

struct Rule {
  bool (*broken)(const Config&);
  std::string_view message;
};

// Upstream tests numbers for truth, so zero counts as not set.
template <class Number>
bool is_set(const std::optional<Number>& number) {
  return number.value_or(Number{}) != Number{};
}

// Returns whether each process has one device in that mode.
bool is_of_processes(VariableUpdate update) {
  return update == VariableUpdate::horovod || update == VariableUpdate::ddl;
}

int ways_to_evaluate_during_training(const Config& c) {
  return int{is_set(c.eval.every_n_steps)} + int{is_set(c.eval.every_n_epochs)} +
         int{!c.eval.at_steps.empty()} + int{!c.eval.at_epochs.empty()};
}

bool frozen(const Config& c) { return c.mode.forward_only && c.mode.freeze_when_forward_only; }

constexpr Rule rules[] = {
    {[](const Config& c) {
       return c.lms.enabled && !c.lms.policy && c.lms.tflms1_is_given && c.lms.tflms2_is_given;
     },
     "flags of two LMS policies are set, tflms1 and tflms2: leave out those of one, or name one by "
     "--lms_policy"},
    {[](const Config& c) {
       return c.lms.options.tflms2.swapout_threshold == 0 || c.lms.options.tflms2.swapin_ahead == 0;
     },
     "--lms_swapout_threshold and --lms_swapin_ahead are at least 1, or -1 to be found"},
    {[](const Config& c) {
       return c.lms.enabled && !c.lms.plan_file && policy_of(c.lms) == "tflms1" &&
              c.lms.options.tflms1.lb > c.lms.options.tflms1.ub;
     },
     "--lms_lb is at most --lms_ub, which is 10000 where it is not set"},
    {[](const Config& c) { return c.lms.plan_file && c.lms.slices.count != 1; },
     "the plan of --lms_plan_file says in how many slices its step computes; drop --lms_slices"},
    {[](const Config& c) { return c.lms.plan_file && c.lms.row_slices.count != 1; },
     "the plan of --lms_plan_file says in how many slices its step computes images; drop "
     "--lms_row_slices"},
    {[](const Config& c) { return c.lms.plan_file && c.lms.dense_slices.count != 1; },
     "the plan of --lms_plan_file says in how many slices its step computes dense layers; drop "
     "--lms_dense_slices"},
    {[](const Config& c) { return c.mode.forward_only && c.mode.eval; },
     "--forward_only and --eval exclude each other: the first times inference, the second "
     "measures accuracy"},
    {[](const Config& c) { return is_set(c.size.length.batches) && is_set(c.size.length.epochs); },
     "--num_batches and --num_epochs both set the length; give one of them"},
    {[](const Config& c) {
       return is_set(c.size.min_time) &&
              (is_set(c.size.length.batches) || is_set(c.size.length.epochs));
     },
     "--min_time says when to stop, and so do --num_batches and --num_epochs; give one of them"},
    {[](const Config& c) { return is_set(c.size.min_time) && c.mode.eval; },
     "--min_time is a time of training or --forward_only; an evaluation is as long as "
     "--num_eval_batches says"},
    {[](const Config& c) {
       return is_set(c.size.min_time) && ways_to_evaluate_during_training(c) > 0;
     },
     "the --eval_during_training_* flags need to know how long the training is; replace --min_time "
     "by --num_batches"},
    {[](const Config& c) { return is_set(c.eval.length.batches) && is_set(c.eval.length.epochs); },
     "--num_eval_batches and --num_eval_epochs both set the length; give one of them"},
    {[](const Config& c) { return c.num_gpus > 1 && is_of_processes(c.variable_update); },
     "--variable_update=horovod and ddl have one device in each process: drop --num_gpus and start "
     "more processes with mpirun -np N"},
    {[](const Config& c) { return c.num_gpus > 1 && c.gpu.simulate; },
     "--simulate predicts one device; drop --num_gpus, or use --simulate_ranks=N"},
    {[](const Config& c) { return !c.comm.simulate_ranks.empty() && !c.gpu.simulate; },
     "--simulate_ranks predicts steps of a machine that --simulate names"},
    {[](const Config& c) {
       return std::ranges::any_of(c.comm.simulate_ranks,
                                  [](std::int64_t n) { return n < 1 || n > 4096; });
     },
     "--simulate_ranks takes numbers of ranks from 1 to 4096"},
    {[](const Config& c) {
       return std::ranges::any_of(c.comm.numa_nodes,
                                  [](auto node) { return node < 0 || node > 1023; });
     },
     "--comm_numa_nodes takes numbers of NUMA nodes from 0 to 1023"},
    {[](const Config& c) { return !c.comm.simulate_ranks.empty() && c.lms.enabled; },
     "--simulate_ranks predicts steps without --lms so far; drop one of them"},
    {[](const Config& c) { return !c.comm.simulate_ranks.empty() && mode_of(c) != Mode::training; },
     "--simulate_ranks predicts the exchange of gradients; drop --eval and --forward_only"},
    {[](const Config& c) {
       return !c.comm.simulate_ranks.empty() && c.variable_update == VariableUpdate::independent;
     },
     "--simulate_ranks predicts the exchange of gradients, and --variable_update=independent has "
     "none; drop one of them"},
    {[](const Config& c) {
       return c.comm.hierarchical_copy && c.num_gpus <= 1 && !c.comm.launched;
     },
     "--hierarchical_copy needs several devices: add --num_gpus"},
    {[](const Config& c) {
       return c.comm.hierarchical_copy && c.num_gpus > 1 && c.num_gpus % 2 != 0;
     },
     "--hierarchical_copy has two halves of devices: make --num_gpus even"},
    {[](const Config& c) {
       return c.comm.hierarchical_copy && c.comm.network == GpuNetwork::gcp_v100 && c.num_gpus != 8;
     },
     "--network_topology=gcp_v100 has 8 devices: use --num_gpus=8 or dgx1"},
    {[](const Config& c) { return c.comm.repacking > 0 && c.comm.small_bytes > 0; },
     "--gradient_repacking joins all gradients and --agg_small_grads_max_bytes the small ones; "
     "drop "
     "one of them"},
    {[](const Config& c) { return c.comm.repacking > 0 && c.comm.chunk_kb > 0; },
     "--gradient_repacking says how many pieces there are, and --comm_chunk_kb how large they are; "
     "drop one of them"},
    {[](const Config& c) { return 2e-3 * c.comm.heartbeat_ms > c.comm.peer_timeout_s; },
     "--comm_peer_timeout_s has to be at least twice --comm_heartbeat_ms, or ranks that live are "
     "given up"},
    {[](const Config& c) { return c.comm.rings > 1 && c.comm.topology.has_value(); },
     "--comm_topology is a grid, --comm_rings are rings over all ranks; drop one of them"},
    {[](const Config& c) { return c.num_gpus > 1 && (c.search.batch || c.search.image_size); },
     "--find_max_batch and --find_max_image_size search on one device; drop --num_gpus"},
    {[](const Config& c) { return c.checkpoint.save_secs != 0 && is_set(c.checkpoint.save_steps); },
     "--save_model_secs and --save_model_steps exclude each other"},
    {[](const Config& c) { return ways_to_evaluate_during_training(c) > 1; },
     "give at most one of the --eval_during_training_* flags"},
    {[](const Config& c) {
       return ways_to_evaluate_during_training(c) > 0 && (c.mode.eval || c.mode.forward_only);
     },
     "the --eval_during_training_* flags do not work with --eval or --forward_only"},
    {[](const Config& c) {
       return is_set(c.eval.stop_at_top_1_accuracy) && ways_to_evaluate_during_training(c) == 0;
     },
     "--stop_at_top_1_accuracy needs one of the --eval_during_training_* flags"},
    {[](const Config& c) { return frozen(c) && c.checkpoint.train_dir; },
     "--freeze_when_forward_only has no variables to save; drop --train_dir"},
    {[](const Config& c) { return frozen(c) && c.data.dir && !c.data.use_prefetch; },
     "--freeze_when_forward_only with --data_dir needs --datasets_use_prefetch"},
    {[](const Config& c) { return c.mode.eval && !c.checkpoint.train_dir && !c.gpu.simulate; },
     "--eval needs --train_dir to find the checkpoint in"},
    {[](const Config& c) { return c.data.input_only && !c.data.dir; },
     "--input_only measures how fast files are read: add --data_dir"},
    {[](const Config& c) { return c.data.input_only && c.comm.launched; },
     "--input_only measures one process: start it without mpirun"},
    {[](const Config& c) { return c.data.input_only && (c.gpu.simulate || c.search.any()); },
     "--input_only reads files, which --simulate, --find_max_batch and --find_max_image_size do "
     "not; drop one of them"},
    {[](const Config& c) {
       return c.data.preprocessor == Preprocessor::official_models && c.data.distortions;
     },
     "--input_preprocessor=official_models_imagenet has no --distortions; drop one of them"},
    {[](const Config& c) { return !c.data.dir && !c.data.row().has_networks; },
     "--data_name=tensors needs --data_dir=FILE.safetensors"},
    {[](const Config& c) {
       return repeats_on_all_ranks(c) && c.variable_update != VariableUpdate::independent;
     },
     "--comm_check=majority compares ranks that train alone: add --variable_update=independent"},
    {[](const Config& c) {
       return repeats_on_all_ranks(c) && c.num_gpus <= 1 && !c.comm.launched && !c.gpu.simulate;
     },
     "--comm_check=majority compares ranks, and this is one: start several, such as mpirun -np 3 "
     "cnn_benchmarks --variable_update=independent --comm_check=majority"},
    {[](const Config& c) { return repeats_on_all_ranks(c) && c.mode.eval; },
     "--comm_check=majority compares steps of training or --forward_only; drop --eval"},
    {[](const Config& c) { return flips_a_bit(c.comm.fault) && (c.mode.eval || c.gpu.simulate); },
     "--comm_fault: what=flip changes a tensor in a step of training or --forward_only; drop "
     "--eval and --simulate"},
    {[](const Config& c) { return repeats_on_all_ranks(c) && c.gpu.simulate; },
     "--simulate runs nothing that --comm_check=majority could compare; drop one of them"},
    {[](const Config& c) { return c.search.batch && c.search.image_size; },
     "--find_max_batch and --find_max_image_size exclude each other"},
    {[](const Config& c) { return c.search.image_size && c.data.dir; },
     "--find_max_image_size searches with synthetic images; drop --data_dir"},
    {[](const Config& c) { return c.gpu.simulate && c.gpu.tune.value_or(false); },
     "--tune times kernels on a device and --simulate has none; drop one of them"},
    {[](const Config& c) { return c.gpu.simulate && c.data.dir; },
     "--simulate predicts steps on synthetic images; drop --data_dir"},
    {[](const Config& c) { return c.gpu.simulate && c.report.log_dir; },
     "--benchmark_log_dir records runs and --simulate runs nothing; use --result_json"},
};

// Returns the flags that have another value than by default, in the order of the help.
std::vector<const Flag*> changed_flags(const Config& config) {
  const Config usual;
  std::vector<const Flag*> changed;
  for (const FlagGroup& group : flag_groups()) {
    for (const Flag& flag : group.flags) {
      if (flag.member != nullptr && flag.member->load(config) != flag.member->load(usual)) {
        changed.push_back(&flag);
      }
    }
  }
  return changed;
}

// Throws Error with the flag's name if one of its values is no regular expression.
void check_expressions(const char* flag, const std::vector<std::string>& expressions) {
  try {
    const lms::NameFilter compiled(expressions);
  } catch (const Error& error) {
    throw Error(fmt::format("--{}: {}", flag, error.what()));
  }
}

}  // namespace

void check_full_hosts(std::int64_t ranks, int each) {
  check(ranks <= each || ranks % each == 0,
        fmt::format("--simulate_ranks={}: hosts of --simulate_ranks_per_host={} would not be full",
                    ranks, each));
}

void check_rules(const Config& config) {
  for (const Rule& rule : rules) {
    check(!rule.broken(config), rule.message);
  }
  for (const std::int64_t ranks : config.comm.simulate_ranks) {
    check_full_hosts(ranks, config.comm.simulate_ranks_per_host);
  }
  check_files(config);
  const lms::Options& lms = config.lms.options;
  check_expressions("lms_excl_ops", lms.excluded_ops);
  check_expressions("lms_incl_ops", lms.included_ops);
  check_expressions("lms_excl_types", lms.excluded_types);
  check_expressions("lms_incl_types", lms.included_types);
  models::check_options(config.rate);
  parse_gpu_indices(config.gpu.indices);
  if (config.comm.spec) {
    parse_reduce_spec(*config.comm.spec);
  }
  if (config.comm.topology) {
    parse_dims(*config.comm.topology);
  }
  if (config.comm.fault) {
    parse_fault_spec(*config.comm.fault);
  }
}

std::vector<std::string> idle_flags(const Config& config) {
  const std::string_view no_step_for = runs_no_step_for(config);
  std::vector<std::string> lines, idle;
  const auto has_no_effect = [&](const NoEffectRule& rule) {
    return rule.when != nullptr && rule.when(config) &&
           std::ranges::find(lines, rule.line) == lines.end();
  };
  for (const Flag* flag : changed_flags(config)) {
    if (flag->needs_steps && !no_step_for.empty()) {
      idle.push_back(fmt::format("--{}", flag->name));
      continue;
    }
    for (const NoEffectRule& rule : flag->no_effect) {
      if (has_no_effect(rule)) {
        lines.emplace_back(rule.line);
      }
    }
  }
  if (!idle.empty()) {
    lines.push_back(fmt::format("{} runs no step: {} {} nothing", no_step_for,
                                fmt::join(idle, ", "), idle.size() == 1 ? "does" : "do"));
  }
  return lines;
}

void drop_files_of_steps(Config& config) {
  if (runs_no_step_for(config).empty()) {
    return;
  }
  const Config usual;
  for (const Flag* flag : changed_flags(config)) {
    if (flag->needs_steps && flag->member->type == Type::text &&
        std::holds_alternative<std::monostate>(flag->member->load(usual))) {
      flag->member->store(config, {});
    }
  }
}

}  // namespace cnn::bench
