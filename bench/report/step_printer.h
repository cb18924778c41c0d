#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/report/console.h"
#include "bench/report/observer.h"

namespace cnn::bench {

struct PrinterOptions {
  int display_every = 10;
  double ewma_weight = 0;  // as of speed()
  bool accuracies = false;
  bool totals = true;  // false: training that ends with an evaluation, which says so instead
  std::string loss_type;
  std::optional<std::int64_t> rounded_warm_up;  // if a batch group made the warm-up longer
  std::int64_t asked_batches = 0;               // --num_batches, from global step 0
  // Set where each of several processes prints its own step lines and the speed of the whole run,
  // as under Horovod: the examples that this process takes in a step.
  std::optional<std::int64_t> own_batch{};
};

// The lines of stdout from the warm-up to the totals, and a terminal's line of progress.
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
  // How many there will be, of a run that ends by its time as far as the average tells.
  std::int64_t expected_steps(std::int64_t done, double average_seconds) const;
  void print_totals(const RunEnd& end);

  Console& console_;
  PrinterOptions options_;
  RunStart run_;
};

}  // namespace cnn::bench
