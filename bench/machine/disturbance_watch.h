#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "bench/machine/disturbance.h"

namespace cnn::bench {

// Notes what disturbs timed steps. Costs a system call a step (about a microsecond), and some files
// of /proc and /sys every half second, between steps: they count too coarsely for short ones. A
// step allocates nothing.
class DisturbanceWatch {
 public:
  // counters: of the processors that compute; of none where another device does. throttled: how
  // often that device was seen throttled so far; it may give nothing.
  DisturbanceWatch(SystemCounters counters, std::int64_t expected_steps,
                   std::function<std::optional<std::uint64_t>()> throttled = {});

  // Timed steps begin, or end for a while. Nothing happens if they already did.
  void resume();
  void pause();
  // A timed step ended just now that took this long, the first since resume() or the last call.
  void add_step(double seconds);

  // One for each step, in their order; ends a stretch.
  const std::vector<Disturbance>& finish();

 private:
  using Clock = std::chrono::steady_clock;
  struct Snapshot {
    Clock::time_point at;
    double cpu_seconds = 0;
    std::vector<CoreTimes> cores;  // empty or one for each processor
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
