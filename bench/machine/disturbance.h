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

// Why a timed step may tell of other things than this program.
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

// The disturbances of a timed step. A count that the system does not tell is empty.
struct Disturbance {
  std::int64_t involuntary_switches = 0;  // of all threads of the process
  double cpu_seconds = 0;                 // of all threads of the process
  // The rest is counted over windows of several steps, of which a step has its share.
  std::optional<double> steal_seconds{};   // of the core that lost most to other guests
  std::optional<double> others_seconds{};  // our cores' time for other processes, added up
  std::optional<bool> throttled{};
  Causes causes{};

  bool disturbed() const { return causes.any(); }
};

// The most involuntary switches that are nothing unusual for a step, from those of steps that
// nothing else disturbed: a program's own threads take cores from each other in every step, and on
// a quiet machine system threads take each core about ten times a second for a moment. Seldom is
// it three deviations more than the upper quartile.
double usual_switches(std::vector<std::int64_t> of_steps, double step_seconds, std::size_t cores);

// Adds the cause to the steps that had more than `usual` of them.
void judge_switches(std::span<Disturbance> steps, double usual);

// The counters before and after a window.
struct CounterWindow {
  double seconds = 0;
  double cpu_seconds = 0;  // of this process
  std::span<const CoreTimes> before, after;
  std::optional<std::uint64_t> throttled_before{}, throttled_after{};
};

// Returns the disturbances of all steps of a window, in seconds of the window. Steal counts from 5
// % of the window on one core, others' work from 5 % of a core (and the square root of cores, as it
// adds small things of all of them up); both from what ticks of 10 ms can tell.
Disturbance judge(const CounterWindow& window);

// How many of the steps, and by what; nothing unless more than 5 % of them were disturbed.
std::optional<std::string> disturbance_line(std::span<const Disturbance> steps);

std::int64_t count_disturbed(std::span<const Disturbance> steps);

}  // namespace cnn::bench
