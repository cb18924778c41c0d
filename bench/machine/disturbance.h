#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/machine/system_counters.h"

namespace cnn::bench {

// Causes outside this program that may distort a step's time.
enum class Cause : std::uint8_t { involuntary_switches, steal, others, throttling };
inline constexpr std::size_t cause_count = 4;
std::string_view name_of(Cause cause);  // "involuntary switches"

// A set of causes.
class Causes {
 public:
  bool has(Cause cause) const { return (bits_ & bit(cause)) != 0; }
  bool any() const { return bits_ != 0; }
  void add(Cause cause) { bits_ = static_cast<std::uint8_t>(bits_ | bit(cause)); }
  void add(Causes more) { bits_ = static_cast<std::uint8_t>(bits_ | more.bits_); }
  std::vector<std::string> names() const;

 private:
  static std::uint8_t bit(Cause cause) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(cause));
  }
  std::uint8_t bits_ = 0;
};

// The disturbances of a timed step. A count is empty if the system does not provide it.
struct Disturbance {
  std::int64_t involuntary_switches = 0;  // of all threads of the process
  double cpu_seconds = 0;                 // of all threads of the process
  // The system counts the rest over windows of several steps; each step gets its share.
  std::optional<double> steal_seconds{};   // of the core that lost the most time to other guests
  std::optional<double> others_seconds{};  // our cores' time for other processes, summed
  std::optional<bool> throttled{};
  Causes causes{};

  bool disturbed() const { return causes.any(); }
};

// Returns the number of involuntary switches that is still usual for a step, from steps without
// other disturbances: the upper quartile plus three deviations, which steps rarely exceed. A
// program's own threads preempt each other in every step, and on a quiet machine system threads
// preempt each core about ten times per second.
double usual_switches(std::vector<std::int64_t> of_steps, double step_seconds, std::size_t cores);

// Adds the cause to steps with more than `usual` involuntary switches.
void judge_switches(std::span<Disturbance> steps, double usual);

// The counters before and after a window.
struct CounterWindow {
  double seconds = 0;
  double cpu_seconds = 0;  // of this process
  std::span<const CoreTimes> before, after;
  std::optional<std::uint64_t> throttled_before{}, throttled_after{};
};

// Returns the disturbances of all steps of a window, in seconds of the window. Steal counts from 5
// % of the window on one core; others' work from 5 % of a core times the square root of the cores,
// since it sums small amounts over all of them. Both must exceed the resolution of 10 ms ticks.
Disturbance judge(const CounterWindow& window);

// Returns how many steps were disturbed, and by which causes; nothing if at most 5 % were.
std::optional<std::string> disturbance_line(std::span<const Disturbance> steps);

std::int64_t count_disturbed(std::span<const Disturbance> steps);

}  // namespace cnn::bench
