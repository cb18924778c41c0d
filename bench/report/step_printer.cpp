#include "bench/report/step_printer.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "bench/report/reporter.h"

namespace cnn::bench {

StepPrinter::StepPrinter(Console& console, PrinterOptions options)
    : console_(console), options_(std::move(options)) {}

void StepPrinter::start(const RunStart& run) {
  run_ = run;
  speed_ = RunningSpeed(static_cast<double>(options_.own_batch.value_or(run.global_batch)),
                        options_.ewma_weight);
  average_ = RunningAverage();
  if (options_.rounded_warm_up) {
    console_.print(warm_up_line(*options_.rounded_warm_up));
  }
  console_.print(running_warm_up_line);
}

void StepPrinter::timing_starts() {
  console_.print(done_warm_up_line);
  console_.print(title_line(options_.loss_type, options_.accuracies));
}

void StepPrinter::step_finished(const FinishedStep& step) {
  if (!step.timed()) {
    return;
  }
  average_.add(step.step_seconds.back());
  speed_.add((options_.own_batch ? step.own_step_seconds : step.step_seconds).back());
  if (is_displayed(step.number, options_.display_every)) {
    print_step(step);
  } else if (console_.shows_progress()) {
    show_progress(step.number);
  }
}

void StepPrinter::show_progress(std::int64_t done) {
  const double average = average_.seconds();
  console_.progress(
      progress_line({.done = done,
                     .total = expected_steps(done, average),
                     .average_seconds = average,
                     .images_per_second = static_cast<double>(run_.global_batch) / average}));
}

void StepPrinter::print_step(const FinishedStep& step) {
  const bool own = options_.own_batch.has_value();
  const StepValues& values = own ? step.own_values : step.values;
  std::optional<Accuracy> accuracy;
  if (options_.accuracies) {
    accuracy = Accuracy{values.top_1, values.top_5};
  }
  const std::string line =
      step_line(step.number, speed_.speed(), own ? step.own_loss : step.loss, accuracy);
  own ? console_.print_own(line) : console_.print(line);
}

void StepPrinter::end(const RunEnd& end) {
  if (end.timed_steps == 0) {
    console_.note(
        options_.asked_batches == 0
            ? "nothing was timed: the run is 0 batches long; raise --num_batches or --num_epochs"
            : fmt::format("nothing was timed: the checkpoint stands at global step {} and the run "
                          "ends at step {}; raise --num_batches or --num_epochs",
                          end.global_step, options_.asked_batches));
  }
  print_totals(end);
}

void StepPrinter::interrupted(const RunEnd& end, std::string_view by) {
  const std::string planned = run_.min_seconds > 0
                                  ? fmt::format("timed steps, short of {:g} s", run_.min_seconds)
                                  : fmt::format("of {} timed steps", run_.timed_steps);
  console_.note(fmt::format("interrupted after {} {}: {}", end.timed_steps, planned, by));
  print_totals(end);
}

std::int64_t StepPrinter::expected_steps(std::int64_t done, double average_seconds) const {
  if (run_.min_seconds <= 0) {
    return run_.timed_steps;
  }
  return std::max(done, static_cast<std::int64_t>(std::ceil(run_.min_seconds / average_seconds)));
}

void StepPrinter::print_totals(const RunEnd& end) {
  if (!options_.totals) {
    console_.print(done_training_line);
  } else if (options_.own_batch) {
    // One write keeps the lines of other processes outside of the block.
    console_.print_own(fmt::format("{}", fmt::join(total_lines(end.images_per_sec), "\n")));
  } else {
    console_.print(total_lines(end.images_per_sec));
  }
  if (!end.step_seconds.empty()) {
    console_.note(percentiles_line(end.step_seconds));
  }
}

}  // namespace cnn::bench
