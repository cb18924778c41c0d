#include "models/learning_rate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "runtime/error.h"

namespace cnn::models {
namespace {

constexpr double imagenet_examples = 1281167;
constexpr std::int64_t cifar10_examples = 50000;

LearningRate constant(double rate) { return {.schedule = PiecewiseRate{{}, {rate}}}; }

double rate_of(const PiecewiseRate& piecewise, std::int64_t step) {
  const auto& boundaries = piecewise.boundaries;
  const auto first = std::lower_bound(boundaries.begin(), boundaries.end(), step);
  return piecewise.rates[static_cast<std::size_t>(first - boundaries.begin())];
}

double rate_of(const StaircaseRate& staircase, std::int64_t step) {
  const std::int64_t stairs = step / staircase.steps;
  const double factor = std::pow(staircase.factor, static_cast<double>(stairs));
  const double rate = staircase.start * factor;
  // As in upstream, 0 is no minimum: a negative rate stays negative.
  return staircase.minimum == 0 ? rate : std::max(staircase.minimum, rate);
}

// Divides the rate by ten after 30, 60, 80 and 90 epochs.
PiecewiseRate falling_rate(double rate, double steps_per_epoch) {
  PiecewiseRate piecewise;
  for (const double epoch : {30.0, 60.0, 80.0, 90.0}) {
    piecewise.boundaries.push_back(static_cast<std::int64_t>(steps_per_epoch * epoch));
  }
  for (const double factor : {1.0, 0.1, 0.01, 0.001, 0.0001}) {
    piecewise.rates.push_back(rate * factor);
  }
  return piecewise;
}

// Has no warm-up, and does not divide by devices whose gradients are summed.
LearningRate official_resnet_rate(double rate_of_32, const RateContext& context) {
  const auto batch = static_cast<double>(context.batch_size);
  return {.schedule = falling_rate(rate_of_32 / 32 * batch, imagenet_examples / batch)};
}

// Goyal et al., 2017: five epochs of warm-up, then steps.
LearningRate resnet_rate(double base, const RateContext& context) {
  const double scaled = scaled_resnet_rate(base, context);
  const double steps_per_epoch = imagenet_examples / static_cast<double>(context.batch_size);
  return {.schedule = falling_rate(scaled, steps_per_epoch),
          .warmup_steps = static_cast<std::int64_t>(steps_per_epoch * 5),
          .warmup_rate = scaled};
}

LearningRate cifar_rate(const std::vector<std::int64_t>& epochs, std::vector<double> rates,
                        const RateContext& context) {
  PiecewiseRate piecewise{{}, std::move(rates)};
  for (const std::int64_t epoch : epochs) {
    piecewise.boundaries.push_back(cifar10_examples / context.batch_size * epoch);
  }
  return {.schedule = std::move(piecewise)};
}

LearningRate default_rate(const LearningRateOptions& options, const DefaultRate& model,
                          const RateContext& context) {
  switch (model.rule) {
    case RateRule::constant:
      return constant(model.rate);
    case RateRule::resnet:
      return resnet_rate(options.resnet_base_lr.value_or(model.rate), context);
    case RateRule::official_resnet:
      return official_resnet_rate(model.rate, context);
    case RateRule::cifar_resnet:
      return cifar_rate({82, 123, 300}, {0.1, 0.01, 0.001, 0.0002}, context);
    case RateRule::densenet:
      return cifar_rate({150, 225, 300}, {0.1, 0.01, 0.001, 0.0001}, context);
    case RateRule::cifar_alexnet: {
      const std::int64_t steps = 100 * cifar10_examples / context.batch_size;
      return {.schedule = StaircaseRate{model.rate, 0.1, std::max<std::int64_t>(steps, 1), 0}};
    }
  }
  throw Error("unknown learning-rate rule");
}

// Parses a number and appends it; returns whether the text is a number.
template <class Number>
bool append(std::vector<Number>& to, std::string_view text) {
  Number& value = to.emplace_back();
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && std::isfinite(static_cast<double>(value));
}

// Rounds down to whole steps. Lengths that no run reaches are cut off where integers would
// overflow.
std::int64_t whole_steps(double steps) {
  constexpr double most = 1e18;
  return static_cast<std::int64_t>(std::min(steps, most));
}

LearningRate piecewise_rate(const RatePieces& pieces, double steps_per_epoch) {
  PiecewiseRate piecewise{{}, pieces.rates};
  for (const std::int64_t epoch : pieces.epochs) {
    const double steps = static_cast<double>(epoch) * steps_per_epoch;
    piecewise.boundaries.push_back(whole_steps(steps) - 1);
  }
  return {.schedule = std::move(piecewise)};
}

LearningRate initial_rate(const LearningRateOptions& options, double steps_per_epoch) {
  const double start = *options.init_learning_rate;
  if (options.num_epochs_per_decay == 0) {
    return constant(start);
  }
  const std::int64_t steps = whole_steps(steps_per_epoch * options.num_epochs_per_decay);
  check(steps > 0, "--num_epochs_per_decay is shorter than one step");
  return {.schedule = StaircaseRate{start, options.learning_rate_decay_factor, steps,
                                    options.minimum_learning_rate}};
}

}  // namespace

double LearningRate::at(std::int64_t global_step) const {
  if (global_step < warmup_steps) {
    return warmup_rate * static_cast<double>(global_step) / static_cast<double>(warmup_steps);
  }
  return std::visit([&](const auto& rule) { return rate_of(rule, global_step); }, schedule);
}

RatePieces read_pieces(std::string_view text) {
  RatePieces pieces;
  bool is_rate = false;
  for (bool more = true; more;) {
    is_rate = !is_rate;
    const std::size_t end = std::min(text.find(';'), text.size());
    const std::string_view part = text.substr(0, end);
    more = end < text.size();
    check((is_rate ? append(pieces.rates, part) : append(pieces.epochs, part)) && (is_rate || more),
          "--piecewise_learning_rate_schedule must be LR0;E1;LR1;...;En;LRn with numbers for the "
          "rates and whole numbers for the epochs");
    text.remove_prefix(end + (more ? 1 : 0));
  }
  check(std::is_sorted(pieces.epochs.begin(), pieces.epochs.end()),
        "--piecewise_learning_rate_schedule: the epochs must grow");
  check(pieces.epochs.empty() || pieces.epochs.front() >= 0,
        "--piecewise_learning_rate_schedule: an epoch cannot be negative");
  return pieces;
}

void check_options(const LearningRateOptions& options) {
  const bool interval = options.num_epochs_per_decay != 0;
  const bool factor = options.learning_rate_decay_factor != 0;
  const bool decays = options.init_learning_rate && interval && factor;
  check(decays || (!interval && !factor),
        "--num_epochs_per_decay and --learning_rate_decay_factor work together and with "
        "--init_learning_rate; give all three or none of the first two");
  check(decays || options.minimum_learning_rate == 0,
        "--minimum_learning_rate needs --init_learning_rate, --num_epochs_per_decay and "
        "--learning_rate_decay_factor");
  check(!options.piecewise_learning_rate_schedule || !options.init_learning_rate,
        "--piecewise_learning_rate_schedule is the whole schedule; drop --init_learning_rate, "
        "--num_epochs_per_decay, --learning_rate_decay_factor and --minimum_learning_rate");
}

LearningRate learning_rate(const LearningRateOptions& options, const DefaultRate& model,
                           const RateContext& context) {
  check_options(options);
  const bool piecewise = options.piecewise_learning_rate_schedule.has_value();
  if (!piecewise && !options.init_learning_rate) {
    return default_rate(options, model, context);
  }
  const double steps_per_epoch =
      context.examples_per_epoch / static_cast<double>(context.batch_size);
  LearningRate result =
      piecewise ? piecewise_rate(*options.piecewise_learning_rate_schedule, steps_per_epoch)
                : initial_rate(options, steps_per_epoch);
  result.warmup_rate =
      piecewise ? std::get<PiecewiseRate>(result.schedule).rates[0] : *options.init_learning_rate;
  result.warmup_steps = whole_steps(steps_per_epoch * options.num_learning_rate_warmup_epochs);
  return result;
}

double scaled_resnet_rate(double base, const RateContext& context) {
  const double own = context.replicated ? base / context.devices : base;
  return own * (static_cast<double>(context.batch_size) / 256.0);
}

}  // namespace cnn::models
