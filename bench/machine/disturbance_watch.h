#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "bench/machine/disturbance.h"

namespace cnn::bench {

// Records what disturbs timed steps. Costs one system call per step (about a microsecond), and
// every half second, between steps, reads of /proc and /sys: their counters are too coarse for
// short steps. A step allocates nothing.
class DisturbanceWatch {
 public:
  // counters: of the processors that compute; of none if another device does. throttled: returns
  // how often that device has been throttled so far, or nothing.
  DisturbanceWatch(SystemCounters counters, std::int64_t expected_steps,
                   std::function<std::optional<std::uint64_t>()> throttled = {});

  // Starts or pauses the timing of steps. A repeated call has no effect.
  void resume();
  void pause();
  // Adds a timed step that has just ended; seconds: since resume() or the previous call.
  void add_step(double seconds);

  // Ends the current stretch and returns the disturbances of each step in order.
  const std::vector<Disturbance>& finish();

 private:
  using Clock = std::chrono::steady_clock;
  struct Snapshot {
    Clock::time_point at;
    double cpu_seconds = 0;
    std::vector<CoreTimes> cores;  // empty, or one per processor
    bool cores_known = false;
    std::optional<std::uint64_t> throttled;
  };

  void take(Snapshot& snapshot);
  void end_window();

  SystemCounters counters_;
  std::function<std::optional<std::uint64_t>()> throttled_;
  std::vector<Disturbance> steps_;
  std::vector<double> seconds_;   // of the steps
  std::size_t window_begin_ = 0;  // the first step of the window
  ProcessUse last_;
  Snapshot before_, after_;
  bool running_ = false;
};

}  // namespace cnn::bench
