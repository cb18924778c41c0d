#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "bench/ranks/launcher.h"
#include "bench/report/console.h"
#include "bench/report/observer.h"
#include "bench/run/stop_saver.h"

namespace cnn::bench {

class Team;

// Saves the variables to --train_dir: every so many steps or seconds, and at the end of the run. If
// the launcher would kill the ranks before a step ends, it prints this and keeps a snapshot, so
// that the state after the last finished step can be saved at once.
class Checkpoints final : public Observer {
 public:
  struct Options {
    int every_steps = 0;                  // 0: no limit in steps
    int every_seconds = 0;                // 0: no limit in time
    std::optional<KillDelay> kill_delay;  // of the launcher, if it kills ranks
    std::function<bool()> asked_to_end;   // whether a stop signal has arrived; thread-safe
    // Global step of the checkpoint that the run has restored. Until a step runs, that checkpoint
    // is not written again: it may have slots of another optimizer, which this run left out.
    std::optional<std::int64_t> restored_step;
  };
  // References must outlive this.
  Checkpoints(Team& team, Console& console, Options options)
      : team_(team),
        console_(console),
        options_(std::move(options)),
        saved_step_(options_.restored_step.value_or(-1)) {}

  void start(const RunStart& run) override;
  void step_finished(const FinishedStep& step) override;
  bool work_is_due(const FinishedStep& step) const override;
  Next work(const FinishedStep& step) override;
  void end(const RunEnd& end) override;

 private:
  using Clock = std::chrono::steady_clock;

  void guard_against_kill(double step_seconds);
  void take_snapshot(std::int64_t global_step);
  void save(std::int64_t global_step);

  Team& team_;
  Console& console_;
  Options options_;
  Clock::time_point last_save_;
  std::int64_t saved_step_ = -1;  // global step whose state is in the folder; -1: none
  std::int64_t steps_ = 0;        // finished
  std::unique_ptr<StopSaver> saver_;
  bool snapshot_taken_ = false;
  Clock::time_point next_snapshot_;
};

}  // namespace cnn::bench
