#include "bench/report/trace_file.h"

#include <gtest/gtest.h>
#include <string>

#include "bench/flags/json.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"
#include "tests/support/swapping_step.h"

namespace cnn::bench {
namespace {

// Returns a timeline of the plan's step in which each part takes a millisecond, one after another.
Timeline traced_timeline(const StepPlan& plan) {
  Timeline timeline;
  for (std::size_t step = 0; step < plan.schedule.steps.size(); ++step) {
    const double start = 1e-3 * static_cast<double>(step);
    timeline.push_back({.start = start, .end = start + 1e-3});
  }
  return timeline;
}

TEST(TraceWriter, WritesTheLastButOneStepOfTheWarmUp) {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "new/folder/trace.json";
  const StepPlan plan = tests::swapping_plan();
  const Timeline timeline = traced_timeline(plan);
  Console console;
  TraceWriter writer(console, path, plan);
  EXPECT_TRUE(writer.wants_timeline(-1));
  EXPECT_FALSE(writer.wants_timeline(0));
  EXPECT_FALSE(writer.wants_timeline(1));
  testing::internal::CaptureStdout();
  writer.step_finished({.number = -1, .timeline = &timeline});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "Dumping trace to " + path + "\n");
  EXPECT_EQ(tests::read_file(path), chrome_trace(plan, timeline, "cnn_benchmarks"));
  EXPECT_TRUE(Json::parse(tests::read_file(path)).contains("traceEvents"));
}

// Other observers may request the timelines of other steps.
TEST(TraceWriter, WritesNoOtherStep) {
  const tests::TemporaryFolder folder;
  const StepPlan plan = tests::swapping_plan();
  const Timeline timeline = traced_timeline(plan);
  Console console;
  TraceWriter writer(console, folder / "trace.json", plan);
  testing::internal::CaptureStdout();
  writer.step_finished({.number = 0, .timeline = &timeline});
  writer.step_finished({.number = -1, .timeline = nullptr});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_TRUE(folder.names().empty());
}

TEST(TraceFile, IsRefusedBeforeARunWhereItCannotBeWritten) {
  const tests::TemporaryFolder folder;
  folder.write("file", "");
  const std::string path = folder / "file/trace.json";
  EXPECT_EQ(tests::error_of([&] { TraceFile file(path); }),
            "--trace_file=" + path + ": cannot write it: Not a directory");
}

}  // namespace
}  // namespace cnn::bench
