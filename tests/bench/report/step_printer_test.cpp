#include "bench/report/step_printer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <gtest/gtest.h>
#include <span>
#include <string>

namespace cnn::bench {
namespace {

struct PrinterOutput {
  std::string out, err;
};

PrinterOutput printed(const PrinterOptions& options,
                      const std::function<void(StepPrinter&)>& events, int rank = 0) {
  Console console;
  console.become_rank(rank);
  StepPrinter printer(console, options);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  events(printer);
  return {.out = testing::internal::GetCapturedStdout(),
          .err = testing::internal::GetCapturedStderr()};
}

// All processes together take half a second for 4 examples; this process has one example and is
// slower.
constexpr std::array<double, 12> half_seconds{0.5, 0.5, 0.5, 0.5, 0.5, 0.5,
                                              0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
constexpr std::array<double, 12> seconds_here{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

FinishedStep printed_step(std::int64_t number) {
  const auto timed = static_cast<std::size_t>(std::max<std::int64_t>(number, 0));
  return {.number = number,
          .values = {.seconds = 0.5, .top_1 = 0.25, .top_5 = 0.75},
          .loss = 2,
          .step_seconds = std::span(half_seconds).first(timed),
          .own_values = {.seconds = 1, .top_1 = 1, .top_5 = 1},
          .own_loss = 3,
          .own_step_seconds = std::span(seconds_here).first(timed)};
}

void run_steps(StepPrinter& printer, std::int64_t last) {
  printer.start({.global_batch = 4, .warm_up = 2, .timed_steps = last});
  for (std::int64_t number = -1; number <= last; ++number) {
    if (number == 1) {
      printer.timing_starts();
    }
    printer.step_finished(printed_step(number));
  }
}

const std::string dashes_line = std::string(64, '-') + "\n";

TEST(StepPrinter, PrintsTheFirstStepAndEachThatIsDisplayed) {
  const PrinterOutput said =
      printed({.display_every = 5, .loss_type = "total_loss"}, [](StepPrinter& printer) {
        run_steps(printer, 12);
        printer.end({.timed_steps = 12, .images_per_sec = 7, .step_seconds = half_seconds});
      });
  EXPECT_EQ(said.out,
            "Running warm up\nDone warm up\nStep\tImg/sec\ttotal_loss\n"
            "1\timages/sec: 8.0 +/- 0.0 (jitter = 0.0)\t2.000\n"
            "5\timages/sec: 8.0 +/- 0.0 (jitter = 0.0)\t2.000\n"
            "10\timages/sec: 8.0 +/- 0.0 (jitter = 0.0)\t2.000\n" +
                dashes_line + "total images/sec: 7.00\n" + dashes_line);
  EXPECT_EQ(said.err, "step time: p50 500.00 ms, p90 500.00 ms, p99 500.00 ms of 12 steps\n");
}

TEST(StepPrinter, ReadsTheNewestTimeOnlySoThatALongRunIsNotSlowedDown) {
  constexpr std::array<double, 4> times{0.1, 0.2, 0.4, 0.25};
  const PrinterOutput said =
      printed({.display_every = 4, .loss_type = "total_loss"}, [&](StepPrinter& printer) {
        printer.start({.global_batch = 10});
        for (std::size_t step = 0; step < times.size(); ++step) {
          printer.step_finished({.number = static_cast<std::int64_t>(step) + 1,
                                 .step_seconds = std::span(times).subspan(step, 1)});
        }
      });
  EXPECT_EQ(said.out,
            "Running warm up\n1\timages/sec: 100.0 +/- 0.0 (jitter = 0.0)\t0.000\n"
            "4\timages/sec: 42.1 +/- 14.1 (jitter = 18.5)\t0.000\n");
}

TEST(StepPrinter, PrintsAccuraciesAndTheWarmUpThatABatchGroupMadeLonger) {
  const PrinterOutput said = printed(
      {.accuracies = true, .totals = false, .loss_type = "base_loss", .rounded_warm_up = 16},
      [](StepPrinter& printer) {
        run_steps(printer, 1);
        printer.end({.timed_steps = 1});
      });
  EXPECT_EQ(said.out,
            "Round up warm up steps to 16 to match batch_group_size\nRunning warm up\nDone warm "
            "up\nStep\tImg/sec\tbase_loss\ttop_1_accuracy\ttop_5_accuracy\n"
            "1\timages/sec: 8.0 +/- 0.0 (jitter = 0.0)\t2.000\t0.250\t0.750\nDone with "
            "training\n");
}

TEST(StepPrinter, PrintsOwnStepsAndTheSpeedOfAllProcesses) {
  const PrinterOutput said = printed(
      {.loss_type = "total_loss", .own_batch = 1},
      [](StepPrinter& printer) {
        run_steps(printer, 1);
        printer.end({.timed_steps = 1, .images_per_sec = 8});
      },
      2);
  EXPECT_EQ(said.out, "1\timages/sec: 1.0 +/- 0.0 (jitter = 0.0)\t3.000\n" + dashes_line +
                          "total images/sec: 8.00\n" + dashes_line);
}

TEST(StepPrinter, SaysWhyNothingWasTimed) {
  const PrinterOutput said = printed({.asked_batches = 30}, [](StepPrinter& printer) {
    printer.start({.global_batch = 4, .timed_steps = -10});
    printer.end({.global_step = 40});
  });
  EXPECT_EQ(said.out, "Running warm up\n" + dashes_line + "total images/sec: 0.00\n" + dashes_line);
  EXPECT_EQ(said.err,
            "nothing was timed: the checkpoint stands at global step 40 and the run ends at step "
            "30; raise --num_batches or --num_epochs\n");
}

TEST(StepPrinter, SaysThatARunOfNoBatchesTimesNothing) {
  const PrinterOutput said = printed({.asked_batches = 0}, [](StepPrinter& printer) {
    printer.start({.global_batch = 4, .timed_steps = 0});
    printer.end({.global_step = 10});
  });
  EXPECT_EQ(said.err,
            "nothing was timed: the run is 0 batches long; raise --num_batches or --num_epochs\n");
}

TEST(StepPrinter, SaysHowMuchOfARunWasInterrupted) {
  const auto interrupted = [](double min_seconds) {
    return printed(
               {},
               [&](StepPrinter& printer) {
                 printer.start({.global_batch = 4, .timed_steps = 100, .min_seconds = min_seconds});
                 printer.interrupted({.timed_steps = 3}, "SIGINT");
               })
        .err;
  };
  EXPECT_EQ(interrupted(0), "interrupted after 3 of 100 timed steps: SIGINT\n");
  EXPECT_EQ(interrupted(2.5), "interrupted after 3 timed steps, short of 2.5 s: SIGINT\n");
}

}  // namespace
}  // namespace cnn::bench
