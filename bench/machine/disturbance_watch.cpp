#include "bench/machine/disturbance_watch.h"

#include <algorithm>
#include <utility>

#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

constexpr auto window = std::chrono::milliseconds(500);

// Returns the share of a step in a window's sum.
std::optional<double> part(const std::optional<double>& whole, double share) {
  return whole ? std::optional(*whole * share) : std::nullopt;
}

}  // namespace

DisturbanceWatch::DisturbanceWatch(SystemCounters counters, std::int64_t expected_steps,
                                   std::function<std::optional<std::uint64_t>()> throttled)
    : counters_(std::move(counters)), throttled_(std::move(throttled)) {
  constexpr std::int64_t most = 1 << 20;  // longer runs may pause for a reallocation
  const auto steps = static_cast<std::size_t>(std::clamp<std::int64_t>(expected_steps, 0, most));
  steps_.reserve(steps);
  seconds_.reserve(steps);
  before_.cores.resize(counters_.cpus().size());
  after_.cores.resize(counters_.cpus().size());
}

void DisturbanceWatch::take(Snapshot& snapshot) {
  snapshot.cores_known = counters_.read(snapshot.cores);
  snapshot.throttled = counters_.throttled();
  if (const std::optional<std::uint64_t> seen = throttled_ ? throttled_() : std::nullopt) {
    snapshot.throttled = snapshot.throttled.value_or(0) + *seen;
  }
  snapshot.cpu_seconds = process_use().cpu_seconds;
  snapshot.at = Clock::now();
}

void DisturbanceWatch::resume() {
  if (!running_) {
    running_ = true;
    take(before_);
    last_ = process_use();
  }
}

void DisturbanceWatch::pause() {
  if (running_) {
    end_window();
    running_ = false;
  }
}

void DisturbanceWatch::add_step(double seconds) {
  const ProcessUse now = process_use();
  const Disturbance step{
      .involuntary_switches = now.involuntary_switches - last_.involuntary_switches,
      .cpu_seconds = now.cpu_seconds - last_.cpu_seconds};
  steps_.push_back(step);
  seconds_.push_back(seconds);
  last_ = now;
  if (Clock::now() - before_.at >= window) {
    end_window();
    last_ = process_use();
  }
}

void DisturbanceWatch::end_window() {
  take(after_);
  const double seconds = in_seconds(after_.at - before_.at);
  CounterWindow counted{.seconds = seconds,
                        .cpu_seconds = after_.cpu_seconds - before_.cpu_seconds,
                        .before = {},
                        .after = {},
                        .throttled_before = before_.throttled,
                        .throttled_after = after_.throttled};
  if (before_.cores_known && after_.cores_known) {
    counted.before = before_.cores;
    counted.after = after_.cores;
  }
  const Disturbance all = judge(counted);
  for (; window_begin_ < steps_.size(); ++window_begin_) {
    Disturbance& step = steps_[window_begin_];
    const double share = seconds_[window_begin_] / seconds;
    step.steal_seconds = part(all.steal_seconds, share);
    step.others_seconds = part(all.others_seconds, share);
    step.throttled = all.throttled;
    step.causes.add(all.causes);
  }
  std::swap(before_, after_);
}

const std::vector<Disturbance>& DisturbanceWatch::finish() {
  pause();
  std::vector<std::int64_t> quiet;
  double seconds = 0;  // sum over all steps
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    seconds += seconds_[i];
    if (!steps_[i].disturbed()) {
      quiet.push_back(steps_[i].involuntary_switches);
    }
  }
  const double mean = seconds / std::max(static_cast<double>(steps_.size()), 1.0);
  judge_switches(steps_, usual_switches(std::move(quiet), mean, counters_.cpus().size()));
  return steps_;
}

}  // namespace cnn::bench
