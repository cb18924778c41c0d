#include "bench/compare/interleaved.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "runtime/median.h"

namespace cnn::compare {
namespace {

constexpr std::size_t min_comparisons = 8;

struct Turn {
  bool candidate = false;
  double log_seconds = 0;  // lower quartile over the turn's steps
};

struct OwnedStep {
  TimedStep step;
  bool candidate = false;
};

// Interpolates between two values, so that the result does not depend on their number.
double lower_quartile(std::vector<double> values) {
  std::ranges::sort(values);
  const double place = static_cast<double>(values.size() - 1) / 4;
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

// Returns the steps of both runs, ordered by their end.
std::vector<OwnedStep> merged(std::span<const TimedStep> base,
                              std::span<const TimedStep> candidate) {
  std::vector<OwnedStep> steps;
  steps.reserve(base.size() + candidate.size());
  for (const TimedStep& step : base) {
    steps.push_back({step, false});
  }
  for (const TimedStep& step : candidate) {
    steps.push_back({step, true});
  }
  std::ranges::stable_sort(steps, {}, [](const OwnedStep& owned) { return owned.step.ended; });
  return steps;
}

std::vector<Turn> turns_of(const std::vector<OwnedStep>& steps) {
  std::vector<Turn> turns;
  std::vector<double> values;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i == 0 || steps[i].candidate != steps[i - 1].candidate) {
      turns.push_back({.candidate = steps[i].candidate});
      values.clear();
    }
    values.push_back(std::log(steps[i].step.seconds));
    if (i + 1 == steps.size() || steps[i].candidate != steps[i + 1].candidate) {
      turns.back().log_seconds = lower_quartile(values);
    }
  }
  return turns;
}

bool has_times(std::span<const TimedStep> steps) {
  return std::ranges::all_of(steps, [](const TimedStep& step) { return step.ended > 0; });
}

}  // namespace

std::optional<double> interleaved_slowdown(std::span<const TimedStep> base,
                                           std::span<const TimedStep> candidate) {
  if (!has_times(base) || !has_times(candidate)) {
    return std::nullopt;
  }
  const std::vector<Turn> turns = turns_of(merged(base, candidate));
  std::vector<double> longer;
  for (std::size_t i = 1; i + 1 < turns.size(); ++i) {
    const double others = (turns[i - 1].log_seconds + turns[i + 1].log_seconds) / 2;
    longer.push_back(turns[i].candidate ? turns[i].log_seconds - others
                                        : others - turns[i].log_seconds);
  }
  if (longer.size() < min_comparisons) {
    return std::nullopt;
  }
  return median(std::move(longer));
}

bool may_be_interleaved(std::span<const TimedStep> base, std::span<const TimedStep> candidate) {
  return !has_times(base) || !has_times(candidate) ||
         (base.front().ended < candidate.back().ended &&
          candidate.front().ended < base.back().ended);
}

}  // namespace cnn::compare
