#include "bench/flags/sizes.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "runtime/error.h"

namespace cnn::bench {

namespace {

constexpr std::int64_t default_batches = 100;

// Truncates like an integer cast in upstream, where integers have no limit.
std::int64_t batches_for(double epochs, std::int64_t batch, std::int64_t examples) {
  const double wanted = epochs * static_cast<double>(examples) + static_cast<double>(batch) - 1;
  if (!(std::abs(wanted) < 0x1p62)) {
    throw Error(fmt::format("{} epochs of {} examples are too many to count", epochs, examples));
  }
  return static_cast<std::int64_t>(wanted) / batch;
}

bool evaluates_during_training(const Config& config) {
  return config.eval.every_n_steps.value_or(0) != 0 ||
         config.eval.every_n_epochs.value_or(0) != 0 || !config.eval.at_steps.empty() ||
         !config.eval.at_epochs.empty();
}

}  // namespace

Mode mode_of(const Config& config) {
  if (config.mode.forward_only) {
    return Mode::forward_only;
  }
  if (config.mode.eval) {
    return Mode::evaluation;
  }
  return evaluates_during_training(config) ? Mode::training_and_evaluation : Mode::training;
}

std::string_view mode_name(Mode mode) {
  switch (mode) {
    case Mode::training:
      return "training";
    case Mode::evaluation:
      return "evaluation";
    case Mode::training_and_evaluation:
      return "training + evaluation";
    case Mode::forward_only:
      return "forward only";
  }
  throw Error("not a mode");
}

std::int64_t per_device_batch(int flag, std::int64_t model_default) {
  return flag > 0 ? flag : model_default;
}

Length run_length(LengthFlags flags, std::int64_t global_batch, std::int64_t examples) {
  check(global_batch > 0 && examples > 0, "a run needs a batch and examples");
  const std::int64_t batches = flags.batches.value_or(0);
  const double epochs = flags.epochs.value_or(0);
  check(batches == 0 || epochs == 0, "batches and epochs both set the length; give one of them");
  Length length{.batches = batches != 0 ? batches : default_batches};
  if (epochs != 0) {
    length.batches = batches_for(epochs, global_batch, examples);
  }
  length.epochs = static_cast<double>(length.batches) * static_cast<double>(global_batch) /
                  static_cast<double>(examples);
  return length;
}

Length eval_length(const Config& config, std::int64_t batch, std::int64_t examples) {
  if (config.eval.length.batches.value_or(0) != 0 || config.eval.length.epochs.value_or(0) != 0) {
    return run_length(config.eval.length, batch, examples);
  }
  return run_length(config.size.length, batch, examples);
}

std::int64_t warm_up_batches(std::optional<int> flag, std::optional<int> autotune_threshold) {
  if (flag) {
    return *flag;
  }
  const std::int64_t set = autotune_threshold.value_or(0);
  const std::int64_t threshold = set == 0 ? 1 : set;
  return std::max<std::int64_t>(10, 5 * threshold * threshold);
}

int staging_operations(const Config& config) {
  const bool prefetched =
      config.data.dir && config.data.use_prefetch && config.device == DeviceKind::gpu;
  return prefetched ? 0 : 1;
}

std::int64_t round_up_warm_up(std::int64_t warm_up, std::int64_t group, int staging) {
  const std::int64_t made = warm_up + staging - 1;
  if (made % group == 0) {
    return warm_up;
  }
  // A negative `made` (no warm-up, no staging) rounds up to 0.
  const std::int64_t groups = made < 0 ? 0 : made / group + 1;
  return groups * group - staging + 1;
}

bool EvalSchedule::due(std::int64_t step, std::int64_t last) const {
  if (step <= 0 || step == last) {
    return false;
  }
  return (every > 0 && step % every == 0) || at.contains(step) || is_multiple(step);
}

// Neighbouring multiples are at least one step apart, so that one near the quotient is the only
// candidate.
bool EvalSchedule::is_multiple(std::int64_t step) const {
  if (!(multiples.count >= 1)) {  // nor a number
    return false;
  }
  const auto& [interval, count, batch, examples] = multiples;
  const double epochs =
      static_cast<double>(step) * static_cast<double>(batch) / static_cast<double>(examples);
  const double near = std::floor(epochs / interval);
  for (double i = std::max(1.0, near - 1); i <= std::min(near + 1, count); ++i) {
    if (batches_for(i * interval, batch, examples) == step) {
      return true;
    }
  }
  return false;
}

EvalSchedule eval_schedule(const Config& config, const Length& length, std::int64_t global_batch,
                           std::int64_t examples) {
  EvalSchedule schedule{.every = config.eval.every_n_steps.value_or(0)};
  schedule.at.insert(config.eval.at_steps.begin(), config.eval.at_steps.end());
  for (const double epochs : config.eval.at_epochs) {
    schedule.at.insert(batches_for(epochs, global_batch, examples));
  }
  const double interval = config.eval.every_n_epochs.value_or(0);
  const double step = static_cast<double>(global_batch) / static_cast<double>(examples);
  if (interval > 0 && interval <= step) {
    schedule.every = 1;  // every step follows some multiple
  } else if (interval > 0) {
    schedule.multiples = {.interval = interval,
                          .count = std::ceil((length.epochs - interval) / interval),
                          .global_batch = global_batch,
                          .examples = examples};
  }
  return schedule;
}

}  // namespace cnn::bench
