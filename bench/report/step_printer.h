#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/report/console.h"
#include "bench/report/observer.h"
#include "bench/report/running_speed.h"

namespace cnn::bench {

struct PrinterOptions {
  int display_every = 10;
  double ewma_weight = 0;  // see speed()
  bool accuracies = false;
  bool totals = true;  // false: training followed by an evaluation, which prints another line
  std::string loss_type;
  std::optional<std::int64_t> rounded_warm_up;  // if a batch group lengthened the warm-up
  std::int64_t asked_batches = 0;               // length of the run, from global step 0
  // Examples per step of this process, if each of several processes prints its own step lines and
  // the speed of the whole run, as under Horovod.
  std::optional<std::int64_t> own_batch{};
};

// Prints the lines of stdout from the warm-up to the totals, and a terminal's progress line.
class StepPrinter final : public Observer {
 public:
  // The console must outlive the printer.
  StepPrinter(Console& console, PrinterOptions options);

  void start(const RunStart& run) override;
  void timing_starts() override;
  void step_finished(const FinishedStep& step) override;
  void end(const RunEnd& end) override;
  void interrupted(const RunEnd& end, std::string_view by) override;

 private:
  void print_step(const FinishedStep& step);
  void show_progress(std::int64_t done);
  // Returns the total number of steps; for a run with a time limit, the estimate from the average.
  std::int64_t expected_steps(std::int64_t done, double average_seconds) const;
  void print_totals(const RunEnd& end);

  Console& console_;
  PrinterOptions options_;
  RunStart run_;
  RunningSpeed speed_;      // of the step lines
  RunningAverage average_;  // of the progress line
};

}  // namespace cnn::bench
