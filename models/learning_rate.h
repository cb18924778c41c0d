#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace cnn::models {

// The schedule of a model if no flag sets a rate. `constant` is the model's rate at all steps; the
// others are the schedules of the papers, in epochs of the model's data set.
enum class RateRule : std::uint8_t {
  constant,
  resnet,
  official_resnet,
  cifar_resnet,
  cifar_alexnet,
  densenet
};

struct DefaultRate {
  double rate = 0.005;  // resnet: at 256 examples per step; official_resnet: at 32
  RateRule rule = RateRule::constant;
};

// The value of --piecewise_learning_rate_schedule: rates[i] until epochs[i] have passed, then the
// last rate.
struct RatePieces {
  std::vector<std::int64_t> epochs;  // ascending or equal
  std::vector<double> rates;         // one more than epochs
};

// Parses "rate;epoch;rate;epoch;...;rate". Throws Error with the flag's name for any other text.
RatePieces read_pieces(std::string_view text);

// The values of the flags with these names.
struct LearningRateOptions {
  std::optional<double> init_learning_rate;
  std::optional<RatePieces> piecewise_learning_rate_schedule;
  double num_epochs_per_decay = 0;
  double learning_rate_decay_factor = 0;
  double num_learning_rate_warmup_epochs = 0;  // ignored by a model's own schedule
  double minimum_learning_rate = 0;
  std::optional<double> resnet_base_lr;
};

// The sizes that turn epochs into steps.
struct RateContext {
  std::int64_t batch_size = 32;         // examples per step of all devices together
  double examples_per_epoch = 1281167;  // of the training set
  int devices = 1;
  // Gradients are summed over devices: ResNet divides its rate by `devices`.
  bool replicated = false;
};

// rates[i] up to and including step boundaries[i], then the last rate.
struct PiecewiseRate {
  std::vector<std::int64_t> boundaries;
  std::vector<double> rates;
};

// The rate start * factor^floor(step / steps), and at least `minimum` unless that is 0.
struct StaircaseRate {
  double start = 0;
  double factor = 1;
  std::int64_t steps = 1;
  double minimum = 0;
};

// The learning rate of every step of a run, as data.
struct LearningRate {
  std::variant<PiecewiseRate, StaircaseRate> schedule;
  std::int64_t warmup_steps = 0;
  double warmup_rate = 0;  // reached at step warmup_steps, linearly from 0

  // Returns the rate of the step after `global_step` finished steps.
  double at(std::int64_t global_step) const;
};

// Throws Error with the flags' names if flags contradict each other.
void check_options(const LearningRateOptions& options);

// Returns a piecewise schedule if one is given, else init_learning_rate with its decay, else the
// model's schedule. Throws like check_options, and if the decay interval is shorter than a step.
LearningRate learning_rate(const LearningRateOptions& options, const DefaultRate& model,
                           const RateContext& context);

// Returns base * batch / 256; first divides base by the devices if their gradients are summed.
double scaled_resnet_rate(double base, const RateContext& context);

}  // namespace cnn::models
