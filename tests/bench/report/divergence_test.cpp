#include "bench/report/divergence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr double infinite_loss = std::numeric_limits<double>::infinity();
constexpr double undefined_loss = std::numeric_limits<double>::quiet_NaN();

FinishedStep step_of_loss(std::int64_t number, double loss) {
  return {.number = number, .global_step = number + 10, .total_loss = loss, .loss = loss};
}

// NOLINTNEXTLINE(bugprone-exception-escape): moving or destroying a Json does not throw.
struct WatchedRun {
  Json result;
  std::string notes;
  int looked = 0;  // counts the searches for a non-finite tensor
};

WatchedRun watch_losses(const std::vector<FinishedStep>& steps,
                        std::optional<std::int64_t> checked_step = {}, bool finds = true) {
  WatchedRun run;
  Console console;
  DivergenceWatch watch(
      console, run.result,
      [&] {
        ++run.looked;
        return FirstNonFinite{.tensor = finds ? "tensor " + std::to_string(run.looked) : "",
                              .of_whole_step = checked_step.has_value()};
      },
      checked_step);
  testing::internal::CaptureStderr();
  for (const FinishedStep& each : steps) {
    watch.step_finished(each);
    if (watch.work_is_due(each)) {
      EXPECT_TRUE(each.timed());
      EXPECT_EQ(watch.work(each), Next::go_on);
    }
  }
  watch.end({});
  run.notes = testing::internal::GetCapturedStderr();
  return run;
}

Json diverged(const std::vector<FinishedStep>& steps) {
  const Json result = watch_losses(steps).result;
  return result.contains("diverged") ? result["diverged"] : Json(nullptr);
}

TEST(Divergence, IsToldWithTheStepSinceWhichTheLossIsNotFinite) {
  EXPECT_TRUE(diverged({step_of_loss(1, 7), step_of_loss(2, 3)}).is_null());
  EXPECT_TRUE(diverged({step_of_loss(1, infinite_loss), step_of_loss(2, 3)}).is_null())
      << "the loss became finite again";
  EXPECT_EQ(diverged({step_of_loss(1, 7), step_of_loss(2, undefined_loss),
                      step_of_loss(3, undefined_loss)}),
            Json({{"step", 2}, {"global_step", 12}, {"loss", "nan"}, {"tensor", "tensor 1"}}));
  EXPECT_EQ(
      diverged({step_of_loss(-1, -infinite_loss), step_of_loss(0, undefined_loss)}),
      Json({{"step", nullptr}, {"global_step", 9}, {"loss", "-inf"}, {"tensor", "tensor 1"}}));
}

TEST(Divergence, NamesNoTensorOfAnEarlierOne) {
  const WatchedRun run = watch_losses(
      {step_of_loss(1, undefined_loss), step_of_loss(2, 3), step_of_loss(3, infinite_loss)});
  EXPECT_EQ(run.result["diverged"],
            Json({{"step", 3}, {"global_step", 13}, {"loss", "inf"}, {"tensor", nullptr}}));
}

TEST(Divergence, IsNotedOnceHoweverOftenTheLossGoesAndComesBack) {
  const WatchedRun run = watch_losses(
      {step_of_loss(1, undefined_loss), step_of_loss(2, 3), step_of_loss(3, infinite_loss)});
  EXPECT_EQ(run.looked, 1);
  EXPECT_THAT(run.notes, AllOf(HasSubstr("step 1 (global step 11): the loss is nan"),
                               Not(HasSubstr("step 3 (global step 13): the loss is inf; "))));
}

TEST(Divergence, SaysThatNothingInMemoryTellsWhereItBegan) {
  const WatchedRun run = watch_losses({step_of_loss(4, undefined_loss)}, {}, false);
  EXPECT_THAT(run.notes, AllOf(HasSubstr("what is left of the step in memory is finite"),
                               HasSubstr("the same run with --check_finite_step=14 looks at all")));
  EXPECT_TRUE(run.result["diverged"]["tensor"].is_null());
}

TEST(Divergence, BlamesTheWeightsAsFarAsTheSumOfTheirSquaresProves) {
  FinishedStep step = step_of_loss(1, undefined_loss);
  EXPECT_THAT(watch_losses({step}).notes, Not(HasSubstr("weights")));
  step.values.l2 = undefined_loss;
  EXPECT_THAT(watch_losses({step}).notes,
              HasSubstr("the weights were not finite before this step"));
  step.values.l2 = infinite_loss;  // also of finite weights, whose squares overflow
  EXPECT_THAT(watch_losses({step}).notes,
              AllOf(HasSubstr("the sum of the squared weights was infinite before this step"),
                    Not(HasSubstr("the weights were not finite"))));
}

TEST(Divergence, TellsOfTheCheckedStepWhateverItsLoss) {
  EXPECT_THAT(watch_losses({step_of_loss(1, 2), step_of_loss(2, 3)}, 12).notes,
              HasSubstr("global step 12: the loss is finite; the first tensor of the step that is "
                        "not is tensor 1"));
  EXPECT_THAT(watch_losses({step_of_loss(0, 2)}, 10, false).notes,
              HasSubstr("global step 10: the loss is finite; so is every tensor of the step"));
  EXPECT_THAT(watch_losses({step_of_loss(1, 2)}, 99).notes,
              HasSubstr("--check_finite_step=99: the run did not come to this step"));
}

}  // namespace
}  // namespace cnn::bench
