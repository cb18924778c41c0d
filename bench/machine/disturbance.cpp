#include "bench/machine/disturbance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace cnn::bench {
namespace {

constexpr double share_that_disturbs = 0.05;  // minimum share of a step, and of the steps
constexpr double tick = 1 / ticks_per_second;

struct Sums {
  double steal = 0, others = 0;
  std::int64_t switches = 0;
  std::array<std::int64_t, cause_count> steps{};  // steps with each cause
};

Sums sums_of(std::span<const Disturbance> steps) {
  Sums sums;
  for (const Disturbance& step : steps) {
    sums.steal += step.steal_seconds.value_or(0);
    sums.others += step.others_seconds.value_or(0);
    sums.switches += step.involuntary_switches;
    for (std::size_t i = 0; i < cause_count; ++i) {
      sums.steps.at(i) += step.causes.has(static_cast<Cause>(i)) ? 1 : 0;
    }
  }
  return sums;
}

std::string amount(Cause cause, const Sums& sums) {
  switch (cause) {
    case Cause::involuntary_switches:
      return fmt::format(" ({})", sums.switches);
    case Cause::steal:
      return fmt::format(" ({:.2f} s of a core)", sums.steal);
    case Cause::others:
      return fmt::format(" ({:.2f} s of our cores)", sums.others);
    case Cause::throttling:
      return "";
  }
  return "";
}

// Judges the cores of a window if the counters cover it: some systems list processors but keep all
// counters at zero.
void judge_cores(const CounterWindow& window, Disturbance& result) {
  double idle = 0, steal = 0, worst = 0, counted = 0;
  for (std::size_t i = 0; i < window.before.size(); ++i) {
    const CoreTimes& before = window.before[i];
    const CoreTimes& after = window.after[i];
    const double stolen = tick * static_cast<double>(after.steal - before.steal);
    idle += tick * static_cast<double>(after.idle - before.idle);
    counted += tick * static_cast<double>(after.all - before.all);
    steal += stolen;
    worst = std::max(worst, stolen);
  }
  const auto cores = static_cast<double>(window.before.size());
  if (counted < window.seconds * cores / 2 - 2 * tick * cores) {
    return;
  }
  result.steal_seconds = worst;
  if (worst >= std::max(share_that_disturbs * window.seconds, 2 * tick)) {
    result.causes.add(Cause::steal);
  }
  // Idle time is exact, while busy time is often only sampled: all time that is not idle is busy.
  const double others = window.seconds * cores - idle - steal - window.cpu_seconds;
  result.others_seconds = std::max(others, 0.0);
  if (others >= std::sqrt(cores) * std::max(share_that_disturbs * window.seconds, 2 * tick)) {
    result.causes.add(Cause::others);
  }
}

}  // namespace

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::involuntary_switches:
      return "involuntary switches";
    case Cause::steal:
      return "steal";
    case Cause::others:
      return "other processes";
    case Cause::throttling:
      return "throttling";
  }
  return "";
}

std::vector<std::string> Causes::names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < cause_count; ++i) {
    if (has(static_cast<Cause>(i))) {
      names.emplace_back(name_of(static_cast<Cause>(i)));
    }
  }
  return names;
}

double usual_switches(std::vector<std::int64_t> of_steps, double step_seconds, std::size_t cores) {
  constexpr double per_core_and_second = 10;
  const double system =
      per_core_and_second * step_seconds * static_cast<double>(std::max<std::size_t>(cores, 1));
  double lower = 0, upper = system;
  if (!of_steps.empty()) {
    std::ranges::sort(of_steps);
    lower = static_cast<double>(of_steps[of_steps.size() / 4]);
    upper = static_cast<double>(of_steps[of_steps.size() * 3 / 4]);
  }
  return upper + 3 * std::max(upper - lower, std::sqrt(upper + system));
}

void judge_switches(std::span<Disturbance> steps, double usual) {
  for (Disturbance& step : steps) {
    if (static_cast<double>(step.involuntary_switches) > usual) {
      step.causes.add(Cause::involuntary_switches);
    }
  }
}

Disturbance judge(const CounterWindow& window) {
  Disturbance result{.cpu_seconds = window.cpu_seconds};
  if (!window.before.empty() && window.before.size() == window.after.size()) {
    judge_cores(window, result);
  }
  if (window.throttled_before && window.throttled_after) {
    result.throttled = *window.throttled_after > *window.throttled_before;
    if (*result.throttled) {
      result.causes.add(Cause::throttling);
    }
  }
  return result;
}

std::int64_t count_disturbed(std::span<const Disturbance> steps) {
  return std::ranges::count_if(steps, &Disturbance::disturbed);
}

std::optional<std::string> disturbance_line(std::span<const Disturbance> steps) {
  const std::int64_t disturbed = count_disturbed(steps);
  const auto all = static_cast<double>(steps.size());
  if (static_cast<double>(disturbed) <= share_that_disturbs * all) {
    return std::nullopt;
  }
  const Sums sums = sums_of(steps);
  std::string causes;
  for (std::size_t i = 0; i < cause_count; ++i) {
    if (sums.steps.at(i) > 0) {
      const auto cause = static_cast<Cause>(i);
      causes += fmt::format("{}{} in {}{}", causes.empty() ? "" : ", ", name_of(cause),
                            sums.steps.at(i), amount(cause, sums));
    }
  }
  return fmt::format("disturbed: {} of {} timed steps: {}; the figures may be too low", disturbed,
                     steps.size(), causes);
}

}  // namespace cnn::bench
