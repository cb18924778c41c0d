#include "bench/flags/flag_rules.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "bench/flags/number_text.h"
#include "bench/flags/sizes.h"
#include "runtime/error.h"

namespace cnn::bench {

namespace {

struct Rule {
  bool (*broken)(const Config&);
  std::string_view message;
};

// The original tests numbers for truth, so a zero counts as not given.
template <class Number>
bool is_set(const std::optional<Number>& number) {
  return number.value_or(Number{}) != Number{};
}

// Where processes or hosts would have to exchange something.
bool needs_others(VariableUpdate update) {
  return update != VariableUpdate::parameter_server && update != VariableUpdate::replicated &&
         update != VariableUpdate::independent;
}

bool odd_decay(const Config& c) {
  const bool any = c.rate.epochs_per_decay != 0 || c.rate.decay_factor != 0;
  const bool all =
      c.rate.epochs_per_decay != 0 && c.rate.decay_factor != 0 && c.rate.init.has_value();
  return any && !all;
}

// LR0;E1;LR1;...: floats at the even places, whole numbers at the odd ones, a float last.
bool malformed_schedule(const Config& c) {
  if (!c.rate.piecewise) {
    return false;
  }
  std::string_view rest = *c.rate.piecewise;
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
  return int{is_set(c.eval.every_n_steps)} + int{is_set(c.eval.every_n_epochs)} +
         int{!c.eval.at_steps.empty()} + int{!c.eval.at_epochs.empty()};
}

bool frozen(const Config& c) { return c.mode.forward_only && c.mode.freeze_when_forward_only; }

constexpr Rule rules[] = {
    {[](const Config& c) { return c.mode.forward_only && c.mode.eval; },
     "--forward_only and --eval exclude each other: the first times inference, the second "
     "measures accuracy"},
    {[](const Config& c) { return is_set(c.size.length.batches) && is_set(c.size.length.epochs); },
     "--num_batches and --num_epochs both set the length; give one of them"},
    {[](const Config& c) { return is_set(c.eval.length.batches) && is_set(c.eval.length.epochs); },
     "--num_eval_batches and --num_eval_epochs both set the length; give one of them"},
    {odd_decay,
     "--num_epochs_per_decay and --learning_rate_decay_factor work together and with "
     "--init_learning_rate; give all three or none of the first two"},
    {[](const Config& c) {
       return c.rate.minimum != 0 &&
              (!c.rate.init || c.rate.epochs_per_decay == 0 || c.rate.decay_factor == 0);
     },
     "--minimum_learning_rate needs --init_learning_rate, --num_epochs_per_decay and "
     "--learning_rate_decay_factor"},
    {[](const Config& c) {
       return c.rate.piecewise && (c.rate.init || c.rate.decay_factor != 0 || c.rate.minimum != 0 ||
                                   c.rate.epochs_per_decay != 0);
     },
     "--piecewise_learning_rate_schedule is the whole schedule; drop --init_learning_rate, "
     "--num_epochs_per_decay, --learning_rate_decay_factor and --minimum_learning_rate"},
    {malformed_schedule,
     "--piecewise_learning_rate_schedule must be LR0;E1;LR1;...;En;LRn with numbers for the rates "
     "and whole numbers for the epochs"},
    {[](const Config& c) { return c.variable_update == VariableUpdate::ddl; },
     "--variable_update=ddl is IBM's distributed library; use replicated on this single device"},
    {[](const Config& c) { return needs_others(c.variable_update); },
     "--variable_update: this version runs one process with one device, so only "
     "parameter_server, replicated and independent exist (and are equal)"},
    {[](const Config& c) { return c.checkpoint.save_secs != 0 && is_set(c.checkpoint.save_steps); },
     "--save_model_secs and --save_model_steps exclude each other"},
    {[](const Config& c) {
       return !c.checkpoint.train_dir &&
              (c.checkpoint.save_secs != 0 || is_set(c.checkpoint.save_steps));
     },
     "--save_model_secs and --save_model_steps need --train_dir to save to"},
    {[](const Config& c) { return ways_to_evaluate_during_training(c) > 1; },
     "give at most one of the --eval_during_training_* flags"},
    {[](const Config& c) {
       return ways_to_evaluate_during_training(c) > 0 && (c.mode.eval || c.mode.forward_only);
     },
     "the --eval_during_training_* flags do not work with --eval or --forward_only"},
    {[](const Config& c) {
       return c.eval.stop_at_top_1_accuracy && ways_to_evaluate_during_training(c) == 0;
     },
     "--stop_at_top_1_accuracy needs one of the --eval_during_training_* flags"},
    {[](const Config& c) { return frozen(c) && c.checkpoint.train_dir; },
     "--freeze_when_forward_only has no variables to save; drop --train_dir"},
    {[](const Config& c) { return frozen(c) && c.data.dir && !c.data.use_prefetch; },
     "--freeze_when_forward_only with --data_dir needs --datasets_use_prefetch"},
    {[](const Config& c) { return c.mode.eval && !c.checkpoint.train_dir && !c.gpu.simulate; },
     "--eval needs --train_dir to find the checkpoint in"},
    {[](const Config& c) { return c.data.dir && c.data.name == "imagenet"; },
     "ImageNet's TFRecords are not read yet; leave out --data_dir for synthetic images or use "
     "--data_name=tensors, mnist or cifar10"},
    {[](const Config& c) { return !c.data.dir && c.data.name == "tensors"; },
     "--data_name=tensors needs --data_dir=FILE.safetensors"},
    {[](const Config& c) { return c.gpu.tune && !c.gpu.plan_cache; },
     "--tune needs --plan_cache=FILE to keep what it finds"},
    {[](const Config& c) { return c.gpu.simulate && c.gpu.tune; },
     "--tune times kernels on a device and --simulate has none; drop one of them"},
    {[](const Config& c) { return c.gpu.simulate && c.data.dir; },
     "--simulate predicts steps on synthetic images; drop --data_dir"},
    {[](const Config& c) { return c.gpu.simulate && c.report.log_dir; },
     "--benchmark_log_dir records runs and --simulate runs nothing; use --result_json"},
};

bool evaluates(const Config& c) { return c.mode.eval || ways_to_evaluate_during_training(c) > 0; }

bool too_little_warm_up(const Config& c) {
  return !c.report.trace_file.empty() && !c.gpu.simulate &&
         (c.mode.eval || warm_up_batches(c.size.warm_up_batches, c.size.autotune_threshold) < 2);
}

// What counts, spaces or stores steps.
bool steps_are_set(const Config& c) {
  return is_set(c.size.length.batches) || is_set(c.size.length.epochs) || c.size.warm_up_batches ||
         is_set(c.eval.length.batches) || is_set(c.eval.length.epochs) ||
         c.report.display_every != 10;
}

// Whether settings of one optimizer differ from their defaults.
bool momentum_is_set(const Config& c) {
  return c.optimizer.momentum != OptimizerOptions{}.momentum;
}

bool rmsprop_is_set(const Config& c) {
  const OptimizerOptions usual;
  return c.optimizer.rmsprop_decay != usual.rmsprop_decay ||
         c.optimizer.rmsprop_momentum != usual.rmsprop_momentum ||
         c.optimizer.rmsprop_epsilon != usual.rmsprop_epsilon;
}

bool adam_is_set(const Config& c) {
  const OptimizerOptions usual;
  return c.optimizer.adam_beta1 != usual.adam_beta1 || c.optimizer.adam_beta2 != usual.adam_beta2 ||
         c.optimizer.adam_epsilon != usual.adam_epsilon;
}

bool scales_losses(const Config& c) {
  return c.precision.use_fp16 || c.precision.type == Precision::fp16;
}

constexpr Rule idle_rules[] = {
    {[](const Config& c) { return momentum_is_set(c) && c.optimizer.name != "momentum"; },
     "--momentum acts with --optimizer=momentum only"},
    {[](const Config& c) { return rmsprop_is_set(c) && c.optimizer.name != "rmsprop"; },
     "--rmsprop_decay, --rmsprop_momentum and --rmsprop_epsilon act with --optimizer=rmsprop only"},
    {[](const Config& c) { return adam_is_set(c) && c.optimizer.name != "adam"; },
     "--adam_beta1, --adam_beta2 and --adam_epsilon act with --optimizer=adam only"},
    {[](const Config& c) {
       return (c.precision.loss_scale || c.precision.automatic_loss_scale) && !scales_losses(c);
     },
     "--fp16_loss_scale and --fp16_enable_auto_loss_scale act with --use_fp16 or --precision=fp16 "
     "only"},
    {[](const Config& c) {
       return c.precision.loss_scale_every_n != PrecisionOptions{}.loss_scale_every_n &&
              !c.precision.automatic_loss_scale;
     },
     "--fp16_inc_loss_scale_every_n acts with --fp16_enable_auto_loss_scale only"},
    {[](const Config& c) { return !c.data.use_prefetch && !c.data.dir; },
     "--nodatasets_use_prefetch does not act on synthetic data"},
    {[](const Config& c) { return !c.gpu.deterministic && c.device == DeviceKind::cpu; },
     "--nodeterministic acts on a GPU only"},
    {[](const Config& c) { return c.gpu.simulate && c.checkpoint.train_dir; },
     "--train_dir does not act with --simulate: nothing is restored or saved"},
    {[](const Config& c) { return c.gpu.simulate && c.gpu.plan_cache; },
     "--plan_cache does not act with --simulate: cuDNN's first proposals are planned"},
    {[](const Config& c) { return c.gpu.simulate && steps_are_set(c); },
     "--simulate predicts one step: flags for the number of steps and their display do not act"},
    {[](const Config& c) { return !c.gpu.graph && c.device == DeviceKind::cpu; },
     "--nouse_cuda_graph acts on a GPU only"},
    {[](const Config& c) { return c.gpu.memory_fraction != 0 && c.device == DeviceKind::cpu; },
     "--gpu_memory_frac_for_testing acts on a GPU only"},
    {[](const Config& c) { return c.eval.interval_secs != 0 && !c.mode.eval; },
     "--eval_interval_secs acts with --eval only"},
    {[](const Config& c) {
       return !evaluates(c) && (c.eval.batch != 0 || c.eval.length.batches || c.eval.length.epochs);
     },
     "--eval_batch_size, --num_eval_batches and --num_eval_epochs act only if the run evaluates"},
    {[](const Config& c) { return c.mode.freeze_when_forward_only && !c.mode.forward_only; },
     "--freeze_when_forward_only acts with --forward_only only"},
    {too_little_warm_up,
     "--trace_file traces the last but one warm-up step and this run has none: no trace"},
    {[](const Config& c) { return c.report.test_id && !c.report.log_dir; },
     "--benchmark_test_id acts with --benchmark_log_dir only"},
    {[](const Config& c) {
       return c.data.synthetic_labels != SyntheticLabels::random && c.data.dir;
     },
     "--synthetic_labels acts on synthetic data only"},
    {[](const Config& c) { return c.data.tensors_as != "imagenet" && c.data.name != "tensors"; },
     "--tensors_as acts with --data_name=tensors only"},
    {[](const Config& c) { return c.data.distortions && c.data.name != "cifar10"; },
     "--distortions acts on CIFAR-10 only"},
    {[](const Config& c) {
       return c.device == DeviceKind::cpu && (c.gpu.tune || c.gpu.plan_cache);
     },
     "--tune and --plan_cache act on a GPU only"},
    {[](const Config& c) { return c.data.distortions && c.data.name == "cifar10" && !c.data.dir; },
     "--distortions does not act on synthetic data"},
};

}  // namespace

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
