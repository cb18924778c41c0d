#include "bench/run/lms_trace.h"

#include <gtest/gtest.h>
#include <set>

#include "bench/flags/json.h"
#include "bench/session/session.h"
#include "bench/session/team.h"
#include "tests/bench/session/small_team.h"
#include "tests/support/files.h"
#include "tests/support/swapping_step.h"

namespace cnn::bench {
namespace {

TEST(LmsTrace, HasThePlannedStepBesideTheMeasuredOne) {
  const StepPlan plan = tests::swapping_plan();
  const Timeline planned(plan.schedule.steps.size(), {.start = 1, .end = 2});
  const Timeline measured(plan.schedule.steps.size(), {.start = 1, .end = 4});
  const Json trace = Json::parse(planned_and_measured(plan, planned, measured));
  const Json alone = Json::parse(chrome_trace(plan, planned, "planned"));
  EXPECT_EQ(trace["traceEvents"].size(), 2 * alone["traceEvents"].size());
  std::set<int> processes;
  std::set<double> longest[2];
  for (const Json& event : trace["traceEvents"]) {
    const int process = event["pid"];
    processes.insert(process);
    if (event.contains("dur")) {
      longest[process].insert(event["dur"].get<double>());
    }
  }
  EXPECT_EQ(processes, (std::set<int>{0, 1}));
  ASSERT_FALSE(longest[0].empty() || longest[1].empty());
  EXPECT_NEAR(*longest[1].rbegin(), 3 * *longest[0].rbegin(), 1e-3);
}

TEST(LmsTrace, WritesTheFirstTimedStepAlone) {
  const tests::TemporaryFolder folder;
  tests::SmallTeam run({"--lms"});
  run.team.start(0);
  LmsTrace trace(folder / "new/trace.json", run.team.first());
  EXPECT_TRUE(trace.wants_timeline(1));
  EXPECT_FALSE(trace.wants_timeline(0));
  EXPECT_FALSE(trace.wants_timeline(2));
  Timeline timeline;
  run.team.step(0, 0.1, &timeline);
  trace.step_finished({.number = 2, .timeline = &timeline});
  trace.step_finished({.number = 1, .timeline = nullptr});
  EXPECT_EQ(tests::read_file(folder / "new/trace.json"), "");
  trace.step_finished({.number = 1, .timeline = &timeline});
  EXPECT_EQ(
      tests::read_file(folder / "new/trace.json"),
      planned_and_measured(run.team.first().plan(), run.team.first().lms()->timeline, timeline));
}

}  // namespace
}  // namespace cnn::bench
