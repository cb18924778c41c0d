#include "lms/live_bytes.h"

#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

#include "tests/lms/problem.h"
#include "tests/lms/step_case.h"

namespace cnn::lms {
namespace {

using tests::StepCase;
using tests::unit;

TEST(LiveBytes, AreThoseOfEachStepAsPlaced) {
  const tests::Problem chain = tests::uniform_chain(4);
  std::vector<std::size_t> units;
  for (const std::size_t bytes : live_bytes(chain.request())) {
    units.push_back(bytes / unit);
  }
  EXPECT_EQ(units, (std::vector<std::size_t>{1, 2, 3, 4, 4, 3, 2, 1, 0}))
      << "the last step copies the output, which has no bytes";
}

TEST(LiveBytes, CountOnceWhatAnOutputTakesOver) {
  for (const bool in_place : {false, true}) {
    StepCase c;
    const Value a = c.make("conv", {c.images()});
    const Value b = c.make("relu", {a}, in_place);
    c.settle(c.make("loss_backward", {b}));
    EXPECT_EQ(live_bytes(c.request())[1], in_place ? unit : 2 * unit) << in_place;
  }
}

TEST(LiveBytes, IncludeWorkspaces) {
  StepCase c;
  c.settle(c.make("loss_backward", {c.make("conv", {c.images()})}), /*workspace=*/5 * unit);
  EXPECT_EQ(live_bytes(c.request())[0], 6 * unit);
  EXPECT_EQ(workspaces_of(c.request()), (std::vector<std::size_t>(2, 5 * unit)));
}

TEST(Fits, ComparesThePlacedScheduleWithTheBudget) {
  tests::Problem chain = tests::uniform_chain(4);
  chain.limit(4, 1, 1);
  EXPECT_TRUE(fits(chain.request(), chain.schedule));
  chain.limit(3, 1, 1);
  EXPECT_FALSE(fits(chain.request(), chain.schedule));
}

TEST(ComputeBefore, SkipsStepsOfOtherLanes) {
  Schedule schedule;
  schedule.steps = {Step{.action = Compute{NodeId{0}}, .lane = Lane::compute},
                    Step{.action = Offload{TensorId{0}}, .lane = Lane::copy_out},
                    Step{.action = Compute{NodeId{1}}, .lane = Lane::compute}};
  EXPECT_EQ(compute_before(schedule, StepId{2}), StepId{0});
  EXPECT_EQ(compute_before(schedule, StepId{1}), StepId{0});
  EXPECT_EQ(compute_before(schedule, StepId{0}), StepId{0}) << "none: the step itself";
}

}  // namespace
}  // namespace cnn::lms
