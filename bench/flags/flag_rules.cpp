#include "bench/flags/flag_rules.h"

#include <algorithm>
#include <cstddef>

#include "bench/flags/number_text.h"
#include "bench/flags/sizes.h"
#include "runtime/error.h"

namespace cnn::bench {

namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The original tests numbers for truth, so a zero counts as not given.
template <class Number>
bool is_set(const std::optional<Number>& number) {
  return number.value_or(Number{}) != Number{};
}

bool is_any_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

bool odd_decay(const Config& c) {
  const bool any = c.num_epochs_per_decay != 0 || c.learning_rate_decay_factor != 0;
  const bool all = c.num_epochs_per_decay != 0 && c.learning_rate_decay_factor != 0 &&
                   c.init_learning_rate.has_value();
  return any && !all;
}

// LR0;E1;LR1;...: floats at the even places, whole numbers at the odd ones, a float last.
bool malformed_schedule(const Config& c) {
  if (!c.piecewise_learning_rate_schedule) {
    return false;
  }
  std::string_view rest = *c.piecewise_learning_rate_schedule;
  std::size_t count = 0;
  for (bool more = true; more; ++count) {
    const std::size_t end = rest.find(';');
    const std::string_view part = rest.substr(0, end);
    if (count % 2 == 0 ? !read_float(part) : !read_integer(part)) {
      return true;
    }
    more = end != std::string_view::npos;
    rest.remove_prefix(more ? end + 1 : rest.size());
  }
  return count % 2 == 0;
}

int ways_to_evaluate_during_training(const Config& c) {
  return int{is_set(c.eval_during_training_every_n_steps)} +
         int{is_set(c.eval_during_training_every_n_epochs)} +
         int{!c.eval_during_training_at_specified_steps.empty()} +
         int{!c.eval_during_training_at_specified_epochs.empty()};
}

bool frozen(const Config& c) { return c.forward_only && c.freeze_when_forward_only; }

bool reduces_by_nccl(const Config& c) {
  return c.all_reduce_spec && contains(*c.all_reduce_spec, "nccl");
}

constexpr Rule rules[] = {
    {[](const Config& c) { return c.forward_only && c.eval; },
     "--forward_only and --eval exclude each other: the first times inference, the second "
     "measures accuracy"},
    {[](const Config& c) { return is_set(c.num_batches) && is_set(c.num_epochs); },
     "--num_batches and --num_epochs both set the length; give one of them"},
    {[](const Config& c) { return is_set(c.num_eval_batches) && is_set(c.num_eval_epochs); },
     "--num_eval_batches and --num_eval_epochs both set the length; give one of them"},
    {odd_decay,
     "--num_epochs_per_decay and --learning_rate_decay_factor work together and with "
     "--init_learning_rate; give all three or none of the first two"},
    {[](const Config& c) {
       return c.minimum_learning_rate != 0 &&
              (!c.init_learning_rate || c.num_epochs_per_decay == 0 ||
               c.learning_rate_decay_factor == 0);
     },
     "--minimum_learning_rate needs --init_learning_rate, --num_epochs_per_decay and "
     "--learning_rate_decay_factor"},
    {[](const Config& c) {
       return c.piecewise_learning_rate_schedule &&
              (c.init_learning_rate || c.learning_rate_decay_factor != 0 ||
               c.minimum_learning_rate != 0 || c.num_epochs_per_decay != 0);
     },
     "--piecewise_learning_rate_schedule is the whole schedule; drop --init_learning_rate, "
     "--num_epochs_per_decay, --learning_rate_decay_factor and --minimum_learning_rate"},
    {malformed_schedule,
     "--piecewise_learning_rate_schedule must be LR0;E1;LR1;...;En;LRn with numbers for the rates "
     "and whole numbers for the epochs"},
    {[](const Config& c) {
       return c.use_fp16 && c.fp16_vars && contains(c.variable_update, "replicated") &&
              reduces_by_nccl(c);
     },
     "--fp16_vars does not work with NCCL in replicated mode; drop --fp16_vars or choose another "
     "--all_reduce_spec"},
    {[](const Config& c) { return c.use_fp16 && c.fp16_vars && c.gradient_repacking != 0; },
     "--fp16_vars does not work with --gradient_repacking; drop one of them"},
    {[](const Config& c) {
       return c.use_fp16 && c.fp16_enable_auto_loss_scale && reduces_by_nccl(c);
     },
     "--fp16_enable_auto_loss_scale does not work with NCCL; choose another --all_reduce_spec"},
    {[](const Config& c) {
       return c.use_fp16 && c.fp16_enable_auto_loss_scale &&
              !is_any_of(c.variable_update, {"parameter_server", "replicated", "independent"});
     },
     "--fp16_enable_auto_loss_scale works with --variable_update=parameter_server, replicated or "
     "independent only"},
    {[](const Config& c) { return c.use_fp16 && c.fp16_enable_auto_loss_scale && c.staged_vars; },
     "--fp16_enable_auto_loss_scale does not work with --staged_vars; drop one of them"},
    {[](const Config& c) { return c.variable_update == "ddl"; },
     "--variable_update=ddl is IBM's distributed library; use replicated on this single device"},
    {[](const Config& c) {
       return !is_any_of(c.variable_update, {"parameter_server", "replicated", "independent"});
     },
     "--variable_update: this version runs one process with one device, so only "
     "parameter_server, replicated and independent exist (and are equal)"},
    {[](const Config& c) { return c.hierarchical_copy && c.num_gpus <= 1; },
     "--hierarchical_copy needs --num_gpus of 2 or more"},
    {[](const Config& c) {
       return c.hierarchical_copy && c.network_topology == "gcp_v100" && c.num_gpus != 8;
     },
     "--network_topology=gcp_v100 needs --num_gpus=8"},
    {[](const Config& c) { return c.save_model_secs != 0 && is_set(c.save_model_steps); },
     "--save_model_secs and --save_model_steps exclude each other"},
    {[](const Config& c) {
       return !c.train_dir && (c.save_model_secs != 0 || is_set(c.save_model_steps));
     },
     "--save_model_secs and --save_model_steps need --train_dir to save to"},
    {[](const Config& c) { return ways_to_evaluate_during_training(c) > 1; },
     "give at most one of the --eval_during_training_* flags"},
    {[](const Config& c) {
       return ways_to_evaluate_during_training(c) > 0 &&
              (c.eval || c.forward_only || !c.job_name.empty() || c.staged_vars);
     },
     "the --eval_during_training_* flags do not work with --eval, --forward_only, --job_name or "
     "--staged_vars"},
    {[](const Config& c) {
       return c.eval_during_training_every_n_epochs && *c.eval_during_training_every_n_epochs < 0;
     },
     "--eval_during_training_every_n_epochs must be more than 0"},
    {[](const Config& c) {
       return std::ranges::any_of(c.eval_during_training_at_specified_steps,
                                  [](const std::string& word) { return !read_integer(word); });
     },
     "--eval_during_training_at_specified_steps must be whole numbers with commas between"},
    {[](const Config& c) {
       return std::ranges::any_of(c.eval_during_training_at_specified_epochs,
                                  [](const std::string& word) { return !read_float(word); });
     },
     "--eval_during_training_at_specified_epochs must be numbers with commas between"},
    {[](const Config& c) {
       return c.stop_at_top_1_accuracy && ways_to_evaluate_during_training(c) == 0;
     },
     "--stop_at_top_1_accuracy needs one of the --eval_during_training_* flags"},
    {[](const Config& c) { return frozen(c) && c.train_dir; },
     "--freeze_when_forward_only has no variables to save; drop --train_dir"},
    {[](const Config& c) { return frozen(c) && c.data_dir && !c.datasets_use_prefetch; },
     "--freeze_when_forward_only with --data_dir needs --datasets_use_prefetch"},
    {[](const Config& c) { return frozen(c) && !c.job_name.empty(); },
     "--freeze_when_forward_only works in a single process only"},
    {[](const Config& c) { return !c.trt_mode.empty() && !frozen(c); },
     "--trt_mode needs --forward_only and --freeze_when_forward_only"},
    {[](const Config& c) { return c.staged_vars && c.variable_update != "parameter_server"; },
     "--staged_vars needs --variable_update=parameter_server"},
    {[](const Config& c) {
       return !c.job_name.empty() && is_any_of(c.variable_update, {"replicated", "independent"});
     },
     "--variable_update=replicated and independent work in a single process only"},
    {[](const Config& c) {
       return c.device == "gpu" &&
              !is_any_of(c.gpu_thread_mode, {"global", "gpu_shared", "gpu_private"});
     },
     "--gpu_thread_mode must be global, gpu_shared or gpu_private"},
    {[](const Config& c) {
       return c.device == "gpu" && c.gpu_thread_mode == "global" && c.per_gpu_thread_count != 0;
     },
     "--per_gpu_thread_count must be 0 with --gpu_thread_mode=global"},
    {[](const Config& c) { return c.eval && !c.train_dir && !c.simulate; },
     "--eval needs --train_dir to find the checkpoint in"},
    {[](const Config& c) {
       return c.ml_perf_compliance_logging && c.model != "resnet50_v1.5" && c.model != "ssd300";
     },
     "--ml_perf_compliance_logging is about the model resnet50_v1.5 only"},
    {[](const Config& c) { return c.data_dir && c.data_name == "imagenet"; },
     "ImageNet's TFRecords are not read yet; leave out --data_dir for synthetic images or use "
     "--data_name=tensors, mnist or cifar10"},
    {[](const Config& c) { return !c.data_dir && c.data_name == "tensors"; },
     "--data_name=tensors needs --data_dir=FILE.safetensors"},
    {[](const Config& c) { return c.tune && !c.plan_cache; },
     "--tune needs --plan_cache=FILE to keep what it finds"},
    {[](const Config& c) { return c.simulate && c.tune; },
     "--tune times kernels on a device and --simulate has none; drop one of them"},
    {[](const Config& c) { return c.simulate && c.data_dir; },
     "--simulate predicts steps on synthetic images; drop --data_dir"},
    {[](const Config& c) { return c.simulate && c.benchmark_log_dir; },
     "--benchmark_log_dir records runs and --simulate runs nothing; use --result_json"},
};

bool evaluates(const Config& c) { return c.eval || ways_to_evaluate_during_training(c) > 0; }

bool too_little_warm_up(const Config& c) {
  return !c.trace_file.empty() && !c.simulate &&
         (c.eval || warm_up_batches(c.num_warmup_batches, c.autotune_threshold) < 2);
}

// What counts, spaces or stores steps.
bool steps_are_set(const Config& c) {
  return is_set(c.num_batches) || is_set(c.num_epochs) || c.num_warmup_batches ||
         is_set(c.num_eval_batches) || is_set(c.num_eval_epochs) || c.display_every != 10;
}

constexpr Rule idle_rules[] = {
    {[](const Config& c) { return c.simulate && c.train_dir; },
     "--train_dir does not act with --simulate: nothing is restored or saved"},
    {[](const Config& c) { return c.simulate && c.plan_cache; },
     "--plan_cache does not act with --simulate: cuDNN's first proposals are planned"},
    {[](const Config& c) { return c.simulate && steps_are_set(c); },
     "--simulate predicts one step: flags for the number of steps and their display do not act"},
    {[](const Config& c) { return !c.use_cuda_graph && c.device == "cpu"; },
     "--nouse_cuda_graph acts on a GPU only"},
    {[](const Config& c) { return c.gpu_memory_frac_for_testing != 0 && c.device == "cpu"; },
     "--gpu_memory_frac_for_testing acts on a GPU only"},
    {[](const Config& c) { return c.eval_interval_secs != 0 && !c.eval; },
     "--eval_interval_secs acts with --eval only"},
    {[](const Config& c) {
       return !evaluates(c) && (c.eval_batch_size != 0 || c.num_eval_batches || c.num_eval_epochs);
     },
     "--eval_batch_size, --num_eval_batches and --num_eval_epochs act only if the run evaluates"},
    {[](const Config& c) { return c.freeze_when_forward_only && !c.forward_only; },
     "--freeze_when_forward_only acts with --forward_only only"},
    {too_little_warm_up,
     "--trace_file traces the last but one warm-up step and this run has none: no trace"},
    {[](const Config& c) { return c.benchmark_test_id && !c.benchmark_log_dir; },
     "--benchmark_test_id acts with --benchmark_log_dir only"},
    {[](const Config& c) { return c.synthetic_labels != "random" && c.data_dir; },
     "--synthetic_labels acts on synthetic data only"},
    {[](const Config& c) { return c.tensors_as != "imagenet" && c.data_name != "tensors"; },
     "--tensors_as acts with --data_name=tensors only"},
    {[](const Config& c) { return c.distortions && c.data_name != "cifar10"; },
     "--distortions acts on CIFAR-10 only"},
    {[](const Config& c) { return c.device == "cpu" && (c.tune || c.plan_cache); },
     "--tune and --plan_cache act on a GPU only"},
    {[](const Config& c) { return c.distortions && c.data_name == "cifar10" && !c.data_dir; },
     "--distortions does not act on synthetic data"},
};

}  // namespace

std::span<const Rule> combination_rules() { return rules; }

void check_rules(const Config& config) {
  for (const Rule& rule : rules) {
    check(!rule.broken(config), rule.message);
  }
}

std::vector<std::string> idle_flags(const Config& config) {
  std::vector<std::string> lines;
  for (const Rule& rule : idle_rules) {
    if (rule.broken(config)) {
      lines.emplace_back(rule.message);
    }
  }
  return lines;
}

}  // namespace cnn::bench
