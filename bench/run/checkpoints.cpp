#include "bench/run/checkpoints.h"

#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <utility>

#include "bench/flags/number_text.h"
#include "bench/machine/prefault.h"
#include "bench/session/team.h"

namespace cnn::bench {

void Checkpoints::start(const RunStart& /*run*/) { last_save_ = Clock::now(); }

void Checkpoints::step_finished(const FinishedStep& step) {
  ++steps_;
  // The first step is not representative.
  if (steps_ > 1 && saver_ == nullptr && options_.kill_delay) {
    guard_against_kill(step.values.seconds);
  }
  if (saver_ != nullptr && Clock::now() >= next_snapshot_) {
    take_snapshot(step.global_step);
  }
}

// Takes effect once a step takes more than half the time that the launcher leaves: the other half
// is for writing the checkpoint.
void Checkpoints::guard_against_kill(double step_seconds) {
  const KillDelay& delay = *options_.kill_delay;
  if (2 * step_seconds <= delay.seconds) {
    return;
  }
  std::string text = fmt::format(
      "mpirun kills the ranks {:g} s after Ctrl-C, but a step takes {:.1f} s: the step under way "
      "may be lost, and with it the checkpoint; start it as mpirun --mca "
      "odls_base_sigkill_timeout {:.0f}",
      delay.seconds, step_seconds, std::max(10.0, 2 * step_seconds));
  const std::size_t bytes = team_.snapshot_bytes();
  const std::size_t available = host_memory_available();
  if (bytes + kept_free(available) > available) {
    console_.note(text + fmt::format("; too little memory is free to keep a copy of the variables "
                                     "({}) that could be saved at once",
                                     bytes_text(bytes)));
    options_.kill_delay.reset();
    return;
  }
  console_.note(text + fmt::format("; until then a copy of the variables ({}) is kept after each "
                                   "step, as far as that takes less than a tenth of the time, and "
                                   "saved as soon as the signal comes",
                                   bytes_text(bytes)));
  saver_ = std::make_unique<StopSaver>(options_.asked_to_end);
}

// Spends at most a tenth of the time on snapshots. The first one, which allocates memory, is not
// representative.
void Checkpoints::take_snapshot(std::int64_t global_step) {
  constexpr int share = 10;
  const Clock::time_point before = Clock::now();
  try {
    saver_->update([&](VariableSnapshot& into) { team_.snapshot(global_step, into); });
  } catch (const std::bad_alloc&) {
    saver_.reset();
    options_.kill_delay.reset();
    console_.note("no copy of the variables is kept any more: there is too little memory for it");
    return;
  }
  const Clock::time_point after = Clock::now();
  const bool first = std::exchange(snapshot_taken_, true);
  next_snapshot_ = first ? after : after + share * (after - before);
}

bool Checkpoints::work_is_due(const FinishedStep& step) const {
  const bool by_steps = options_.every_steps > 0 && step.number % options_.every_steps == 0;
  return by_steps || (options_.every_seconds > 0 &&
                      Clock::now() - last_save_ >= std::chrono::seconds(options_.every_seconds));
}

Next Checkpoints::work(const FinishedStep& step) {
  const auto paused = saver_ ? saver_->pause() : std::unique_lock<std::mutex>();
  save(step.global_step);
  return Next::go_on;
}

void Checkpoints::end(const RunEnd& end) {
  if (saver_) {
    saver_->stop();
    saved_step_ = saver_->saved_step().value_or(saved_step_);
    if (!saver_->problem().empty()) {
      console_.note(saver_->problem());
    }
  }
  save(end.global_step);
}

void Checkpoints::save(std::int64_t global_step) {
  if (saved_step_ != global_step) {
    team_.save(global_step);
    saved_step_ = global_step;
    last_save_ = Clock::now();
  }
}

}  // namespace cnn::bench
