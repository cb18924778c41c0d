#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace cnn::models {

// Which schedule a model follows when no flag names a rate. `constant` is the model's number at all
// steps; the others are the schedules of their papers, in epochs of their own data set.
enum class RateRule : std::uint8_t {
  constant,
  resnet,
  official_resnet,
  cifar_resnet,
  cifar_alexnet,
  densenet
};

struct DefaultRate {
  double rate = 0.005;  // for resnet at 256 examples per step, for official_resnet at 32
  RateRule rule = RateRule::constant;
};

// The value of --piecewise_learning_rate_schedule: rates[i] until epochs[i] are over, the last one
// for ever after.
struct RatePieces {
  std::vector<std::int64_t> epochs;  // they do not fall
  std::vector<double> rates;         // one more than epochs
};

// From "rate;epoch;rate;epoch;...;rate". Throws Error that names the flag if it is not that.
RatePieces read_pieces(std::string_view text);

// The flags of the same names.
struct LearningRateOptions {
  std::optional<double> init_learning_rate;
  std::optional<RatePieces> piecewise_learning_rate_schedule;
  double num_epochs_per_decay = 0;
  double learning_rate_decay_factor = 0;
  double num_learning_rate_warmup_epochs = 0;  // not applied to a model's own schedule
  double minimum_learning_rate = 0;
  std::optional<double> resnet_base_lr;
};

// The sizes that turn epochs into steps.
struct RateContext {
  std::int64_t batch_size = 32;         // examples per step, all devices together
  double examples_per_epoch = 1281167;  // of the training set
  int devices = 1;
  bool replicated = false;  // gradients are summed over devices: ResNet divides its rate by them
};

// rates[i] up to and with step boundaries[i], the last one for ever after.
struct PiecewiseRate {
  std::vector<std::int64_t> boundaries;
  std::vector<double> rates;
};

// max(minimum, start * factor^floor(step / steps)).
struct StaircaseRate {
  double start = 0;
  double factor = 1;
  std::int64_t steps = 1;
  double minimum = 0;
};

// The rate of every step of a run, as data.
struct LearningRate {
  std::variant<PiecewiseRate, StaircaseRate> schedule;
  std::int64_t warmup_steps = 0;
  double warmup_rate = 0;  // reached at step warmup_steps on a line from 0

  // The rate that trains the step after `global_step` finished ones.
  double at(std::int64_t global_step) const;
};

// Throws Error that names the flags if they contradict each other.
void check_options(const LearningRateOptions& options);

// A piecewise schedule if one is given, else init_learning_rate with its decay, else the model's
// own. Throws as check_options does, and on a decay interval shorter than a step.
LearningRate learning_rate(const LearningRateOptions& options, const DefaultRate& model,
                           const RateContext& context);

// base * batch / 256; base is first divided by the devices where their gradients are summed.
double scaled_resnet_rate(double base, const RateContext& context);

}  // namespace cnn::models
