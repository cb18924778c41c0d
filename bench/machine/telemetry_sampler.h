#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "bench/machine/telemetry.h"

namespace cnn::bench {

// Samples a source on a separate thread while steps are timed. The thread that runs the steps waits
// for a reading only where timed steps begin or end.
class TelemetrySampler {
 public:
  // Does not start sampling. The source must outlive the sampler.
  explicit TelemetrySampler(TelemetrySource& source,
                            std::chrono::milliseconds every = std::chrono::milliseconds(100));
  ~TelemetrySampler();  // waits for a running read
  TelemetrySampler(const TelemetrySampler&) = delete;
  TelemetrySampler& operator=(const TelemetrySampler&) = delete;

  // Begin or pause timed steps. Each reads the source once, so that the energy covers exactly the
  // steps between; a repeated call has no effect.
  void resume();
  void pause();

  // Returns how many samples show the device throttled by heat or power supply; empty if it does
  // not report this. Never blocks.
  std::optional<std::uint64_t> throttled_samples() const;

  // Ends sampling and returns the telemetry of the steps, which computed `images`.
  Telemetry finish(std::int64_t images);

 private:
  using Clock = std::chrono::steady_clock;

  void sample();  // the thread
  Reading read();
  double seconds() const;

  TelemetrySource& source_;
  std::uint64_t disturbing_;  // bits
  std::atomic<std::uint64_t> throttled_samples_ = 0;
  std::chrono::milliseconds every_;
  Clock::time_point start_;
  std::mutex mutex_;  // guards all below, and reads of the source
  std::condition_variable changed_;
  TelemetryTotals totals_;
  bool running_ = false, stopped_ = false;
  std::thread thread_;
};

}  // namespace cnn::bench
