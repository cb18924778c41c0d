#include "bench/report/input_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class CountedDataset final : public data::Dataset {
 public:
  std::int64_t size() const override { return 10; }
  data::ImageFormat format() const override { return {}; }
  int classes() const override { return 1; }
  void read(std::int64_t /*index*/, const data::Example& /*into*/) const override {}
  data::InputStatistics statistics() const override { return statistics_; }
  void set(const data::InputStatistics& statistics) { statistics_ = statistics; }

 private:
  data::InputStatistics statistics_;
};

// Returns the stderr lines of a run of ten steps of a second that each waited this long for input.
std::string notes_of_waits(double seconds, Json& result) {
  CountedDataset dataset;
  dataset.set({.examples = 100, .skipped = 1});
  Console console;
  InputRecord record(dataset, {.threads = 1, .cores = 4, .batch = 4}, console, result);
  record.timing_starts();
  testing::internal::CaptureStderr();
  const StepValues values{.seconds = 1, .input_wait = seconds};
  for (int step = 1; step <= 10; ++step) {
    record.step_finished({.number = step, .values = values, .own_values = values});
  }
  dataset.set({.examples = 140, .skipped = 1, .bytes = 4000});
  record.end({.timed_steps = 10});
  return testing::internal::GetCapturedStderr();
}

TEST(InputRecord, SaysHowLongStepsWaitedAndWhatWouldHelp) {
  Json result;
  EXPECT_THAT(notes_of_waits(0.5, result),
              AllOf(HasSubstr("waited 5.00 s for input, 50.0 % of their time"),
                    HasSubstr("4.0 images/s more"), HasSubstr("--datasets_num_private_threads=4")));
  EXPECT_EQ(result["input"]["images"], 40);
  EXPECT_EQ(result["input"]["bytes_read"], 4000);
  EXPECT_EQ(result["input"]["examples_read"], 40) << "only timed steps count";
}

TEST(InputRecord, IsSilentWhereInputWasInTime) {
  Json result;
  EXPECT_THAT(notes_of_waits(0.01, result), IsEmpty());
  EXPECT_EQ(result["input"]["examples_skipped"], 0);
}

TEST(InputRecord, IsSilentOfARunThatTimedNothing) {
  const CountedDataset dataset;
  Console console;
  Json result;
  InputRecord record(dataset, {.threads = 1, .cores = 4, .batch = 4}, console, result);
  record.step_finished({.number = 0, .own_values = {.seconds = 1, .input_wait = 1}});
  testing::internal::CaptureStderr();
  record.end({.timed_steps = 0});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
  EXPECT_FALSE(result.contains("input"));
}

TEST(InputRecord, CountsTheWaitsOfThisProcessAndOfTimedStepsAlone) {
  const CountedDataset dataset;
  Console console;
  Json result;
  InputRecord record(dataset, {.threads = 1, .cores = 4, .batch = 4}, console, result);
  record.step_finished({.number = 0, .own_values = {.seconds = 100, .input_wait = 100}});
  record.timing_starts();
  record.step_finished({.number = 1,
                        .values = {.seconds = 9, .input_wait = 9},
                        .own_values = {.seconds = 1, .input_wait = 0.25}});
  testing::internal::CaptureStderr();
  record.failed({.timed_steps = 1}, "no room");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("waited 0.25 s for input, 25.0 % of their time"));
  EXPECT_EQ(result["input"]["images"], 4);
}

TEST(InputRecord, CountsTheBrokenExamplesOfTheTimedSteps) {
  CountedDataset dataset;
  dataset.set({.examples = 100, .skipped = 1});
  Console console;
  Json result;
  InputRecord record(dataset, {.threads = 1, .cores = 4, .batch = 4}, console, result);
  record.timing_starts();
  dataset.set({.examples = 200, .skipped = 3});
  testing::internal::CaptureStderr();
  record.end({.timed_steps = 1});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "input: 2 broken examples were left out\n");
}

}  // namespace
}  // namespace cnn::bench
