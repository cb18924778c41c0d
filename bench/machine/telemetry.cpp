#include "bench/machine/telemetry.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <utility>

namespace cnn::bench {
namespace {

std::string throttle_name(const TelemetryFacts& facts, std::size_t bit) {
  if (bit < facts.throttle_names.size() && !facts.throttle_names[bit].empty()) {
    return facts.throttle_names[bit];
  }
  return fmt::format("reason {:#x}", std::uint64_t{1} << bit);
}

std::string throttle_text(const std::vector<Telemetry::Throttle>& throttled) {
  if (throttled.empty()) {
    return "not throttled";
  }
  std::string text;
  for (const Telemetry::Throttle& throttle : throttled) {
    text += fmt::format("{} {} in {:.1f} %", text.empty() ? "throttled by" : ", by",
                        throttle.reason, 100 * throttle.share);
  }
  return text + " of samples";
}

// Energy is more exact than samples: a device may report its power as a mean over seconds.
std::optional<double> mean_watts(const Telemetry& telemetry) {
  if (telemetry.joules && telemetry.seconds > 0) {
    return *telemetry.joules / telemetry.seconds;
  }
  return telemetry.watts ? std::optional(telemetry.watts->mean) : std::nullopt;
}

}  // namespace

void TelemetryTotals::Sum::add(const std::optional<double>& value) {
  if (!value) {
    return;
  }
  min = count == 0 ? *value : std::min(min, *value);
  max = count == 0 ? *value : std::max(max, *value);
  sum += *value;
  ++count;
}

std::optional<Range> TelemetryTotals::Sum::range() const {
  if (count == 0) {
    return std::nullopt;
  }
  return Range{.min = min, .mean = sum / static_cast<double>(count), .max = max};
}

void TelemetryTotals::count(const Reading& reading) {
  ++samples_;
  clock_mhz_.add(reading.clock_mhz);
  memory_clock_mhz_.add(reading.memory_clock_mhz);
  watts_.add(reading.watts);
  celsius_.add(reading.celsius);
  memory_bytes_.add(reading.memory_bytes);
  if (reading.throttled) {
    ++throttle_samples_;
    for (std::uint64_t left = *reading.throttled; left != 0; left &= left - 1) {
      ++throttled_.at(static_cast<std::size_t>(std::countr_zero(left)));
    }
  }
}

void TelemetryTotals::begin(const Reading& reading, double seconds) {
  count(reading);
  last_ = reading;
  last_seconds_ = seconds;
}

void TelemetryTotals::add(const Reading& reading, double seconds) {
  const double passed = seconds - last_seconds_;
  seconds_ += passed;
  if (reading.watts && last_.watts) {
    integrated_joules_ += passed * (*reading.watts + *last_.watts) / 2;
  } else {
    integral_whole_ = false;
  }
  // A decreasing counter was reset in between.
  if (reading.joules && last_.joules && *reading.joules >= *last_.joules) {
    counted_joules_ += *reading.joules - *last_.joules;
  } else {
    count_whole_ = false;
  }
  begin(reading, seconds);
}

Telemetry TelemetryTotals::summary(TelemetryFacts facts, double images) const {
  Telemetry telemetry{.facts = std::move(facts),
                      .samples = samples_,
                      .seconds = seconds_,
                      .clock_mhz = clock_mhz_.range(),
                      .memory_clock_mhz = memory_clock_mhz_.range(),
                      .watts = watts_.range(),
                      .celsius = celsius_.range(),
                      .memory_bytes = memory_bytes_.range()};
  if (throttle_samples_ > 0) {
    telemetry.throttled.emplace();
    for (std::size_t bit = 0; bit < throttled_.size(); ++bit) {
      if (throttled_.at(bit) > 0) {
        telemetry.throttled->push_back({.reason = throttle_name(telemetry.facts, bit),
                                        .share = static_cast<double>(throttled_.at(bit)) /
                                                 static_cast<double>(throttle_samples_)});
      }
    }
  }
  // Counters tick several times per second at best: a counter without a tick is no measurement.
  telemetry.joules_counted = count_whole_ && counted_joules_ > 0;
  if (telemetry.joules_counted) {
    telemetry.joules = counted_joules_;
  } else if (integral_whole_ && integrated_joules_ > 0) {
    telemetry.joules = integrated_joules_;
  }
  if (telemetry.joules) {
    telemetry.images_per_joule = images / *telemetry.joules;
  }
  return telemetry;
}

std::string telemetry_line(const Telemetry& telemetry) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (const std::optional<double> watts = mean_watts(telemetry)) {
    add(fmt::format("{:.0f} W mean", *watts));
  }
  if (telemetry.clock_mhz) {
    add(fmt::format("{:.0f} MHz", telemetry.clock_mhz->mean));
    if (telemetry.facts.highest_clock_mhz) {
      text += fmt::format(" ({:.0f} max)", *telemetry.facts.highest_clock_mhz);
    }
  }
  if (telemetry.celsius) {
    add(fmt::format("{:.0f} C", telemetry.celsius->max));
  }
  if (telemetry.images_per_joule) {
    add(fmt::format("{:.3g} images per joule", *telemetry.images_per_joule));
  }
  if (telemetry.throttled) {
    text += (text.empty() ? "" : "; ") + throttle_text(*telemetry.throttled);
  }
  return "telemetry: " + (text.empty() ? telemetry.facts.source + " tells nothing" : text);
}

}  // namespace cnn::bench
