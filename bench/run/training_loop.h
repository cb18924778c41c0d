#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/report/observer.h"

namespace cnn::bench {

class Interruption;
struct Job;
class Team;

using Observers = std::vector<std::unique_ptr<Observer>>;

// Runs the warm-up and the timed steps of training or forward only. Observers do all work between
// steps.
class TrainingLoop {
 public:
  // The team must be started at global_step. References must outlive the loop.
  TrainingLoop(const Job& job, Team& team, Observers& observers, const Interruption& interruption,
               std::int64_t global_step);

  // Runs local steps from -warm-up to the last, or until an observer says stop or the run is
  // interrupted; finishes a running step. Throws Error.
  void run();

  std::int64_t timed_steps() const { return static_cast<std::int64_t>(seconds_.size()); }
  // Returns the speed of the timed steps in this process.
  double own_images_per_sec() const;

 private:
  using Clock = std::chrono::steady_clock;

  void run_steps();
  void step(std::int64_t number);
  void timing_starts();
  Next work_between_steps();
  RunEnd so_far() const;

  const Job& job_;
  Team& team_;
  Observers& observers_;
  const Interruption& interruption_;
  RunStart run_;
  std::vector<double> seconds_, own_seconds_;  // of the timed steps
  Timeline timeline_;
  FinishedStep finished_;  // the latest step
  Clock::time_point timing_start_;
};

}  // namespace cnn::bench
