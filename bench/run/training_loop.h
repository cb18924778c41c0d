#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/machine/telemetry_sampler.h"
#include "bench/report/console.h"
#include "bench/report/result_json.h"

namespace cnn::bench {

struct Job;
class Session;
struct StepValues;

// Warm-up and timed steps of training or forward only, with what happens between them: displayed
// lines, checkpoints, evaluations, the trace.
class TrainingLoop {
 public:
  // The session must be started at global_step. References must outlive the loop.
  TrainingLoop(const Job& job, Session& session, Console& console, ResultRecord& record,
               std::int64_t global_step);

  // Local steps from -warm-up to the last; prints all lines but the totals' successors. Throws
  // Error.
  void run();

 private:
  using Clock = std::chrono::steady_clock;

  StepValues step(std::int64_t local_step);
  void begin_timing();
  void record_step(std::int64_t number, const StepValues& values);
  void display(std::int64_t number, const StepValues& values);
  void save_if_due(std::int64_t finished_steps);
  void save();
  bool evaluate_if_due(std::int64_t finished_steps);  // true: the wanted accuracy is reached
  void finish(std::int64_t timed_steps, bool stopped_early);
  void pause_telemetry();
  void resume_telemetry();
  double reported_loss(const StepValues& values) const;
  double total_loss(const StepValues& values) const;

  const Job& job_;
  Session& session_;
  Console& console_;
  ResultRecord& record_;
  std::int64_t global_step_ = 0;
  std::int64_t last_ = 0;  // local steps end here
  std::vector<double> seconds_;
  double rate_ = 0;  // of the latest step
  Clock::time_point timing_start_, last_save_;
  std::int64_t saved_step_ = -1;
  std::optional<TelemetrySampler> telemetry_;  // while steps are timed, if something tells
};

}  // namespace cnn::bench
