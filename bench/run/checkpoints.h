#pragma once

#include <chrono>
#include <cstdint>

#include "bench/report/observer.h"

namespace cnn::bench {

class Team;

// Saves the variables to --train_dir: every so many steps or seconds, and when the run ends.
class Checkpoints final : public Observer {
 public:
  struct Options {
    int every_steps = 0;    // 0: not by steps
    int every_seconds = 0;  // 0: not by time
  };
  // The team must outlive this.
  Checkpoints(Team& team, Options options) : team_(team), options_(options) {}

  void start(const RunStart& run) override;
  bool work_is_due(const FinishedStep& step) const override;
  Next work(const FinishedStep& step) override;
  void end(const RunEnd& end) override;

 private:
  using Clock = std::chrono::steady_clock;

  void save(std::int64_t global_step);

  Team& team_;
  Options options_;
  Clock::time_point last_save_;
  std::int64_t saved_step_ = -1;
};

}  // namespace cnn::bench
