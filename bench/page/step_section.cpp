#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "bench/page/chart.h"
#include "bench/page/json_text.h"
#include "bench/page/run_sections.h"

namespace cnn::page {
namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

// Returns the disturbances of a step, for a tooltip.
std::string causes_of(const Json& step) {
  std::string text;
  for (const Json& cause : at(step, {"disturbance", "causes"})) {
    text += (text.empty() ? ": " : ", ") + text_of(cause);
  }
  return text;
}

// The time axis: the host's clock from the first step on, or step numbers.
class TimeAxis {
 public:
  TimeAxis(std::span<const ShownRun> runs, bool by_clock) : by_clock_(by_clock) {
    for (const ShownRun& run : runs) {
      for (const Json& step : at(*run.json, {"steps"})) {
        const double ended = number_or(step, "ended", 0);
        by_clock_ = by_clock_ && ended > 0;
        start_ = std::min(start_, ended);
      }
    }
  }

  const char* title() const { return by_clock_ ? "s, both in turns" : "step"; }
  double place_of(const Json& step) const {
    return by_clock_ ? number_or(step, "ended", no_value) - start_ : number_or(step, "step", 0);
  }

 private:
  bool by_clock_;
  double start_ = std::numeric_limits<double>::max();
};

void add_steps(Chart& chart, const ShownRun& run, const TimeAxis& axis) {
  for (const Json& step : at(*run.json, {"steps"})) {
    const bool disturbed = is_true(step, "disturbed");
    const double milliseconds = 1e3 * number_or(step, "seconds", no_value);
    chart.dot(axis.place_of(step), milliseconds, run.style + (disturbed ? " disturbed" : ""),
              fmt::format("{} step {}: {:.3f} ms{}{}", run.label, text_of(at(step, {"step"})),
                          milliseconds, disturbed ? ", disturbed" : "", causes_of(step)));
  }
}

Chart::Points losses_of(const Json& json) {
  Chart::Points points;
  const Json& warm_up = at(json, {"warm_up_losses"});
  double x = 1 - static_cast<double>(warm_up.size());
  for (const Json& loss : warm_up) {
    points.emplace_back(x++, loss.is_number() ? loss.get<double>() : no_value);
  }
  for (const Json& step : at(json, {"steps"})) {
    points.emplace_back(number_or(step, "step", 0), number_or(step, "total_loss", no_value));
  }
  return points;
}

}  // namespace

std::string step_section(std::span<const ShownRun> runs, bool in_turns) {
  const TimeAxis axis(runs, in_turns);
  std::vector<double> numbers, times;
  for (const ShownRun& run : runs) {
    for (const Json& step : at(*run.json, {"steps"})) {
      numbers.push_back(axis.place_of(step));
      times.push_back(1e3 * number_or(step, "seconds", no_value));
    }
  }
  if (numbers.empty()) {
    return {};
  }
  Chart chart({"Step times (hollow: disturbed)", axis.title(), "ms"}, range_of(numbers, false),
              range_of_most(times, true));
  for (const ShownRun& run : runs) {
    add_steps(chart, run, axis);
    if (const auto median = number_at(*run.json, {"summary", "median_step_seconds"})) {
      chart.level(1e3 * *median, "rule " + run.style,
                  fmt::format("{} median {:.2f} ms", run.label, 1e3 * *median),
                  run.style == "a" ? Chart::End::left : Chart::End::right);
    }
  }
  return chart.svg();
}

std::string loss_section(std::span<const ShownRun> runs) {
  std::vector<double> numbers, losses;
  for (const ShownRun& run : runs) {
    for (const auto& [x, y] : losses_of(*run.json)) {
      numbers.push_back(x);
      losses.push_back(y);
    }
  }
  const auto tells_nothing = [](double loss) { return loss == 0 || !std::isfinite(loss); };
  if (std::ranges::all_of(losses, tells_nothing)) {
    return {};  // a run without a gradient has no loss, and older files lack it
  }
  Chart chart({"Total loss (up to 0: warm-up)", "step", ""}, range_of(numbers, false),
              range_of_most(losses, false));
  for (const ShownRun& run : runs) {
    chart.line(losses_of(*run.json), run.style, run.label);
  }
  return chart.svg();
}

}  // namespace cnn::page
