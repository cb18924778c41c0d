#include "runtime/waits.h"

#include <cstddef>
#include <gtest/gtest.h>
#include <optional>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/test_ops.h"

namespace cnn {
namespace {

Step lane_step(Lane lane, std::vector<StepId> after = {}) {
  return {.action = Compute{}, .lane = lane, .after = std::move(after)};
}

VectorClock clock_of(std::int64_t compute, std::int64_t copy_out) {
  VectorClock clock = no_steps;
  clock[index_of_lane(Lane::compute)] = compute;
  clock[index_of_lane(Lane::copy_out)] = copy_out;
  return clock;
}

TEST(VectorClocks, AreOrderedByComponents) {
  EXPECT_TRUE(happened_before(clock_of(1, 2), clock_of(1, 2)));
  EXPECT_TRUE(happened_before(clock_of(0, 2), clock_of(1, 2)));
  EXPECT_FALSE(happened_before(clock_of(1, 0), clock_of(0, 1))) << "concurrent";
  EXPECT_FALSE(happened_before(clock_of(0, 1), clock_of(1, 0)));
}

TEST(VectorClocks, MergeToTheMaximumOfEachComponent) {
  VectorClock clock = clock_of(3, 0);
  merge(clock, clock_of(1, 5));
  EXPECT_EQ(clock, clock_of(3, 5));
}

TEST(HappensBefore, OrdersTheStepsOfOneLane) {
  HappensBefore order;
  EXPECT_EQ(order.add(lane_step(Lane::compute)), no_steps);
  EXPECT_EQ(order.add(lane_step(Lane::compute)), clock_of(0, -1));
  EXPECT_EQ(order.before(Lane::compute), clock_of(1, -1));
  EXPECT_EQ(order.before(Lane::copy_out), no_steps) << "a lane does not wait for another by itself";
}

TEST(HappensBefore, FollowsWaitsFromLaneToLane) {
  HappensBefore order;
  order.add(lane_step(Lane::compute));
  order.add(lane_step(Lane::copy_out, {StepId{0}}));
  order.add(lane_step(Lane::compute));
  const VectorClock start = order.add(lane_step(Lane::side, {StepId{1}}));
  EXPECT_EQ(start, clock_of(0, 1)) << "step 1 implies step 0 but not step 2";
  EXPECT_TRUE(happened_before(order.after(StepId{0}), start));
  EXPECT_FALSE(happened_before(order.after(StepId{2}), start));
}

TEST(HappensBefore, TakesWaitsAsAClockToo) {
  HappensBefore order;
  order.add(lane_step(Lane::compute));
  EXPECT_EQ(order.add(Lane::copy_out, clock_of(0, -1)), clock_of(0, -1));
  EXPECT_EQ(order.before(Lane::copy_out), clock_of(0, 1));
}

TEST(GivenWaits, AreTheLatestOfEachLane) {
  const Schedule schedule{{lane_step(Lane::compute), lane_step(Lane::compute),
                           lane_step(Lane::copy_out),
                           lane_step(Lane::copy_in, {StepId{1}, StepId{0}, StepId{2}})}};
  EXPECT_EQ(given_waits(schedule, 3), clock_of(1, 2));
  EXPECT_EQ(given_waits(schedule, 0), no_steps);
}

TEST(GivenWaits, RefuseAWaitForALaterStep) {
  const Schedule schedule{{lane_step(Lane::compute, {StepId{1}}), lane_step(Lane::copy_out)}};
  EXPECT_EQ(tests::error_of([&] { given_waits(schedule, 0); }),
            "step 0 waits for step 1, which does not come before it");
}

class DataOrderOfOneTensor : public ::testing::Test {
 protected:
  DataOrderOfOneTensor() {
    w_ = graph_.parameter("w", {.shape = Shape{4}}, {});
    x_ = graph_.input("x", {.shape = Shape{4}});
    y_ = emit(tests::Scale(2), {x_});
    emit(tests::Descend(), {w_, y_});
    order_.emplace(graph_);
  }
  VectorClock needs(std::size_t step, const Action& action, Lane lane) {
    return order_->needs(step, {.action = action, .lane = lane, .after = {}});
  }
  TensorId input() const { return x_.id; }
  TensorId output() const { return y_.id; }
  TensorId parameter() const { return w_.id; }

 private:
  Graph graph_;
  Value w_, x_, y_;
  std::optional<DataOrder> order_;  // order by the data of the complete graph
};

TEST_F(DataOrderOfOneTensor, LetsAReadWaitForTheWrite) {
  EXPECT_EQ(needs(0, Fetch{input()}, Lane::copy_out), no_steps);
  EXPECT_EQ(needs(1, Compute{NodeId{0}}, Lane::compute), clock_of(-1, 0));
  EXPECT_EQ(needs(2, Offload{output()}, Lane::copy_out), clock_of(1, -1));
}

TEST_F(DataOrderOfOneTensor, LetsAFetchWaitForTheCopyOnTheHost) {
  needs(0, Fetch{input()}, Lane::copy_out);
  needs(1, Compute{NodeId{0}}, Lane::compute);
  needs(2, Offload{output()}, Lane::copy_out);
  EXPECT_EQ(needs(3, Fetch{output()}, Lane::copy_in), clock_of(-1, 2))
      << "the device bytes are new, so that the compute step does not matter";
}

TEST_F(DataOrderOfOneTensor, LetsAMutationWaitForReaders) {
  needs(0, Fetch{input()}, Lane::copy_in);
  needs(1, Compute{NodeId{0}}, Lane::compute);
  EXPECT_EQ(needs(2, Offload{parameter()}, Lane::copy_out), no_steps);
  EXPECT_EQ(needs(3, Compute{NodeId{1}}, Lane::side), clock_of(1, 2))
      << "it reads y, which step 1 makes, and changes w, which step 2 reads";
}

}  // namespace
}  // namespace cnn
