#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cnn::bench {

// The state of a device at one moment. A value that the device does not report is empty, never 0.
struct Reading {
  std::optional<double> clock_mhz{}, memory_clock_mhz{};
  std::optional<double> watts{}, celsius{};
  std::optional<double> memory_bytes{};      // in use by all processes
  std::optional<std::uint64_t> throttled{};  // one bit per active reason for reduced clocks
  std::optional<double> joules{};            // consumed since a fixed moment
};

// Properties of the device that do not change.
struct TelemetryFacts {
  std::string source;                         // "NVML of driver 580.65.06"
  std::optional<double> highest_clock_mhz{};  // the maximum clock
  std::optional<double> power_limit_watts{};
  std::vector<std::string>
      throttle_names{};        // by bit; a bit without a name has an empty one or none
  std::uint64_t disturbing{};  // bits for heat or power supply, as opposed to a configured limit
};

// A source of readings of a device while it computes.
class TelemetrySource {
 public:
  virtual ~TelemetrySource() = default;
  virtual TelemetryFacts facts() const = 0;
  // One thread at a time calls it, not always the same one.
  virtual Reading read() noexcept = 0;
};

struct Range {
  double min = 0, mean = 0, max = 0;
};

// The telemetry of the timed steps.
struct Telemetry {
  struct Throttle {
    std::string reason;
    double share = 0;  // fraction of the samples, 0 to 1
  };

  TelemetryFacts facts{};
  std::int64_t samples = 0;
  double seconds = 0;  // from the first to the last sample, without pauses
  std::optional<Range> clock_mhz{}, memory_clock_mhz{}, watts{}, celsius{}, memory_bytes{};
  std::optional<std::vector<Throttle>> throttled{};  // by bit; empty if it was never throttled
  std::optional<double> joules{};
  bool joules_counted = false;  // by the device; otherwise the integral of its power
  std::optional<double> images_per_joule{};
};

// Aggregates readings in constant memory.
class TelemetryTotals {
 public:
  // Begins a stretch of timed steps with this reading. `seconds`: since any fixed moment.
  void begin(const Reading& reading, double seconds);
  // Adds a later reading of the same stretch.
  void add(const Reading& reading, double seconds);

  Telemetry summary(TelemetryFacts facts, double images) const;

 private:
  struct Sum {
    std::int64_t count = 0;
    double min = 0, sum = 0, max = 0;
    void add(const std::optional<double>& value);
    std::optional<Range> range() const;
  };

  void count(const Reading& reading);

  std::int64_t samples_ = 0;
  double seconds_ = 0;
  Sum clock_mhz_, memory_clock_mhz_, watts_, celsius_, memory_bytes_;
  std::int64_t throttle_samples_ = 0;  // samples with throttle bits
  std::array<std::int64_t, 64> throttled_{};
  double counted_joules_ = 0, integrated_joules_ = 0;
  bool count_whole_ = true, integral_whole_ = true;  // no reading lacked the needed value
  Reading last_;
  double last_seconds_ = 0;
};

// Returns "telemetry: 412 W mean, 1755 MHz (1980 max), 61 C, ...": mean power and clock, maximum
// temperature, without unknown values.
std::string telemetry_line(const Telemetry& telemetry);

}  // namespace cnn::bench
