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

// Reads a source while steps are timed, on a thread of its own: who runs the steps only ever waits
// for a reading where timed steps begin or end.
class TelemetrySampler {
 public:
  // Samples nothing yet. The source must outlive the sampler.
  explicit TelemetrySampler(TelemetrySource& source,
                            std::chrono::milliseconds every = std::chrono::milliseconds(100));
  ~TelemetrySampler();  // waits for a reading that is under way
  TelemetrySampler(const TelemetrySampler&) = delete;
  TelemetrySampler& operator=(const TelemetrySampler&) = delete;

  // Timed steps begin, or end for a while. Each reads the source once, so that energy is that of
  // the steps between; nothing happens if they already did.
  void resume();
  void pause();

  // Samples so far that show the device slowed down by heat or its power supply; empty if it does
  // not tell. Never waits.
  std::optional<std::uint64_t> throttled_samples() const;

  // Ends it for good, and tells how the device fared while `images` were computed.
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
  std::mutex mutex_;  // of all below, and of reading the source
  std::condition_variable changed_;
  TelemetryTotals totals_;
  bool running_ = false, stopped_ = false;
  std::thread thread_;
};

}  // namespace cnn::bench
