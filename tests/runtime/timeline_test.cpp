#include "runtime/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/support/swapping_step.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using ::testing::HasSubstr;
using tests::Combine;
using tests::floats;
using tests::Scale;

// Returns the plan of fetch x (1000 bytes), scale#0, scale#1 on the side lane, combine#2 and its
// offload.
StepPlan plan() {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->input("x", floats(250));
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Scale(2, {.lane = Lane::side}), {x});
  graph->output("c", emit(Combine(), {a, b}));
  return make_plan(graph, tests::test_kernels());
}

const Costs costs{.seconds = {2, 5, 1}, .out_bytes_per_second = 500, .in_bytes_per_second = 1000};

TEST(Simulate, RunsLanesSideBySideAndObeysWaits) {
  const Timeline timeline = simulate(plan(), costs);
  ASSERT_EQ(timeline.size(), 5U);
  EXPECT_EQ(timeline[0].end, 1) << "1000 bytes at 1000 bytes per second";
  EXPECT_EQ(timeline[1].start, 1);
  EXPECT_EQ(timeline[1].end, 3);
  EXPECT_EQ(timeline[2].start, 1) << "concurrent with scale#0";
  EXPECT_EQ(timeline[2].end, 6);
  EXPECT_EQ(timeline[3].start, 6) << "after both";
  EXPECT_EQ(timeline[4].start, 7);
  EXPECT_EQ(timeline[4].end, 9) << "1000 bytes at 500 bytes per second";
}

TEST(Simulate, TakesCopiesWithoutASpeedForFree) {
  const Timeline timeline = simulate(plan(), {.seconds = {2, 5, 1}});
  EXPECT_EQ(timeline[4].end, 6);
}

TEST(Simulate, RefusesCostsOfAnotherGraph) {
  EXPECT_THROW(simulate(plan(), {.seconds = {1}}), Error);
}

TEST(ChromeTrace, HasARowForEachLaneAndMicroseconds) {
  const StepPlan p = plan();
  const std::string trace = chrome_trace(p, simulate(p, costs), "a \"title\"");
  EXPECT_THAT(
      trace, HasSubstr(R"("name":"process_name","ph":"M","pid":0,"args":{"name":"a \"title\""}})"));
  EXPECT_THAT(trace, HasSubstr(R"("tid":2,"args":{"name":"copy_out"}})"));
  EXPECT_THAT(
      trace,
      HasSubstr(
          R"({"name":"scale#1","ph":"X","pid":0,"tid":1,"ts":1000000.000,"dur":5000000.000,"args":{"step":2}})"));
}

TEST(Simulate, CostsTheDiskByItsOwnSpeeds) {
  const StepPlan p = tests::storing_plan(250);  // 1000 bytes
  Costs slow{.seconds = {1, 1, 1, 1}, .store_bytes_per_second = 100, .load_bytes_per_second = 200};
  const Timeline timeline = simulate(p, slow);
  EXPECT_EQ(timeline[4].end - timeline[4].start, 10);
  EXPECT_EQ(timeline[6].end - timeline[6].start, 5);
  EXPECT_EQ(timeline[7].start, timeline[6].end) << "the fetch waits for the load";
  slow.out_bytes_per_second = slow.in_bytes_per_second = slow.both_bytes_per_second = 1000;
  const Timeline shared = simulate(p, slow);
  EXPECT_NEAR(shared[4].end - shared[4].start, 10, 1e-9) << "the disk does not share the link";
}

TEST(ChromeTrace, HasARowForTheDiskWhereThePlanStoresTensors) {
  const StepPlan stores = tests::storing_plan(250);
  const Costs any{.seconds = {1, 1, 1, 1}};
  EXPECT_THAT(chrome_trace(stores, simulate(stores, any), "title"),
              HasSubstr(R"("tid":5,"args":{"name":"disk"}})"));
  EXPECT_THAT(chrome_trace(plan(), simulate(plan(), costs), "title"),
              testing::Not(HasSubstr(R"("name":"disk")")));
}

}  // namespace
}  // namespace cnn
