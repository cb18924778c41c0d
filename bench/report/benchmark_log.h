#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/flags/config.h"
#include "bench/flags/json.h"
#include "bench/machine/machine_info.h"
#include "bench/report/observer.h"
#include "bench/report/reporter.h"
#include "bench/report/running_speed.h"

namespace cnn::bench {

// Writes the two files of --benchmark_log_dir in the format of upstream's logger.

struct RunDescription {
  Header header;  // the run's printed header
  MachineInfo machine;
  std::optional<std::string> test_id;
  std::optional<std::string> commit;
  std::chrono::system_clock::time_point date;
};

// Returns benchmark_run.log: one object that describes the run. tensorflow_version holds this
// program's version.
Json run_log(const RunDescription& run);

struct Metric {
  std::string name;  // current_examples_per_sec, eval_top_1_accuracy, ...
  double value = 0;
  std::int64_t global_step = 0;
};

// Return the metrics of a displayed step, of the end, and of an evaluation (which upstream intends
// to log but does not).
std::vector<Metric> step_metrics(std::int64_t step, double images_per_second,
                                 const std::optional<Accuracy>& accuracy);
Metric end_metric(std::int64_t steps, double images_per_second);
std::vector<Metric> eval_metrics(std::int64_t global_step, const Accuracy& accuracy,
                                 double images_per_second);

// Returns one line of metric.log, without the line break.
std::string metric_line(const Metric& metric, std::chrono::system_clock::time_point when);

// Creates the folder if needed, rewrites its benchmark_run.log and checks that metric.log is
// writable. Throws Error if it is not.
void write_run_log(const std::string& folder, const RunDescription& run);

// Appends to metric.log in the folder. Throws Error on failure.
void append_metrics(const std::string& folder, const std::vector<Metric>& metrics,
                    std::chrono::system_clock::time_point when);

// Logs the displayed steps and the end of a run.
class MetricLog final : public Observer {
 public:
  struct Options {
    int display_every = 10;
    double ewma_weight = 0;  // see speed()
    bool accuracies = false;
  };
  MetricLog(std::string folder, Options options);

  void start(const RunStart& run) override;
  void step_finished(const FinishedStep& step) override;
  void end(const RunEnd& end) override;

 private:
  std::string folder_;
  Options options_;
  std::int64_t global_batch_ = 0;
  RunningAverage average_;
};

}  // namespace cnn::bench
