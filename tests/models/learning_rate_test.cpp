#include "models/learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/catalog.h"
#include "runtime/error.h"

namespace cnn::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double tolerance = 5e-8;  // the references have seven digits

struct Expected {
  std::int64_t step;
  double rate;
};

void expect_rates(const LearningRate& rate, std::initializer_list<Expected> all_expected) {
  for (const Expected& expected : all_expected) {
    EXPECT_NEAR(rate.at(expected.step), expected.rate, tolerance) << "at step " << expected.step;
  }
}

LearningRate rate_of(std::string_view data_set, std::string_view model,
                     const LearningRateOptions& options, const RateContext& context) {
  return learning_rate(options, find(data_set, model).rate, context);
}

TEST(LearningRate, FallsInFourStepsAfterAWarmUpForResnet) {
  const LearningRate rate = rate_of("imagenet", "resnet50", {}, {.batch_size = 256});
  expect_rates(rate, {{0, 0},
                      {12511, 0.064},
                      {25022, 0.128},
                      {150136, 0.128},
                      {150137, 0.0128},
                      {300273, 0.0128},
                      {300274, 0.00128},
                      {10000000, 0.0000128}});
}

TEST(LearningRate, GrowsWithTheBatchUnlessGradientsAreSummedForResnet) {
  struct Case {
    int devices;
    bool replicated;
    std::int64_t batch;
    double base, expected;
  };
  for (const Case& c : {Case{1, false, 256, 0.050, 0.050}, Case{1, false, 128, 0.128, 0.064},
                        Case{8, true, 2048, 0.128, 0.128}, Case{2, false, 512, 0.128, 0.256},
                        Case{2, true, 13, 0.128, 0.0032500000000000003}}) {
    const RateContext context{
        .batch_size = c.batch, .devices = c.devices, .replicated = c.replicated};
    EXPECT_EQ(scaled_resnet_rate(c.base, context), c.expected) << "batch " << c.batch;
  }
}

TEST(LearningRate, FallsFromARateByTheBatchWithoutWarmUpForOfficialResnet) {
  expect_rates(rate_of("imagenet", "official_resnet50", {.resnet_base_lr = 7}, {.batch_size = 128}),
               {{0, 0.05},
                {300273, 0.05},
                {300274, 0.005},
                {600547, 0.005},
                {600548, 0.0005},
                {10000000, 0.000005}});
  expect_rates(rate_of("imagenet", "official_resnet18_v2", {},
                       {.batch_size = 256, .devices = 8, .replicated = true}),
               {{0, 0.1}, {150136, 0.1}, {150137, 0.01}});
}

TEST(LearningRate, UsesTheBaseRateOfTheFlagForResnet) {
  const LearningRate rate =
      rate_of("imagenet", "resnet50", {.resnet_base_lr = 0.05}, {.batch_size = 256});
  expect_rates(rate, {{150136, 0.05}, {150137, 0.005}});
}

TEST(LearningRate, IsTheInitialOneForEverIfOnlyThatIsGiven) {
  const LearningRate rate = rate_of("imagenet", "resnet50", {.init_learning_rate = 1.0},
                                    {.batch_size = 256, .replicated = true});
  expect_rates(rate, {{0, 1}, {10000000, 1}});
}

TEST(LearningRate, RisesLinearlyWithTheWarmUpFlag) {
  const LearningRate rate = rate_of(
      "imagenet", "resnet50", {.init_learning_rate = 1.0, .num_learning_rate_warmup_epochs = 5},
      {.batch_size = 256, .replicated = true});
  expect_rates(rate, {{0, 0}, {12511, 0.5}, {25022, 1}, {10000000, 1}});
}

TEST(LearningRate, TakesLengthsThatNoRunReaches) {
  LearningRateOptions options{.init_learning_rate = 0.1};
  options.num_learning_rate_warmup_epochs = 1e300;
  EXPECT_LT(rate_of("imagenet", "vgg11", options, {.batch_size = 64}).at(1'000'000), 1e-9);
  options.num_learning_rate_warmup_epochs = 0;
  options.num_epochs_per_decay = 1e300;
  options.learning_rate_decay_factor = 0.5;
  EXPECT_EQ(rate_of("imagenet", "vgg11", options, {.batch_size = 64}).at(1'000'000), 0.1);
}

TEST(LearningRate, DecaysInStairsDownToItsMinimum) {
  const LearningRate rate = rate_of("imagenet", "resnet50",
                                    {.init_learning_rate = 1.0,
                                     .num_epochs_per_decay = 2,
                                     .learning_rate_decay_factor = 0.5,
                                     .minimum_learning_rate = 0.375},
                                    {.batch_size = 32});
  expect_rates(
      rate, {{0, 1}, {80071, 1}, {80072, 0.5}, {160143, 0.5}, {160144, 0.375}, {10000000, 0.375}});
}

TEST(LearningRate, DecaysFromANegativeRateToo) {
  const LearningRate rate = rate_of(
      "imagenet", "resnet50",
      {.init_learning_rate = -1.0, .num_epochs_per_decay = 2, .learning_rate_decay_factor = 0.5},
      {.batch_size = 32});
  expect_rates(rate, {{0, -1}, {80071, -1}, {80072, -0.5}});
}

TEST(LearningRate, RefusesNegativeEpochs) {
  EXPECT_THAT([] { read_pieces("1;-3;.1;5;.01"); },
              ThrowsMessage<Error>(HasSubstr("an epoch cannot be negative")));
  EXPECT_EQ(read_pieces("1;0;.1").epochs, std::vector<std::int64_t>{0});
}

TEST(LearningRate, FollowsAPiecewiseSchedule) {
  const LearningRate rate = rate_of(
      "imagenet", "trivial", {.piecewise_learning_rate_schedule = read_pieces("1;3;.1;5;.01")},
      {.batch_size = 32});
  expect_rates(
      rate, {{0, 1}, {120108, 1}, {120109, 0.1}, {200181, 0.1}, {200182, 0.01}, {100000000, 0.01}});
}

TEST(LearningRate, WarmsUpToTheFirstRateOfAPiecewiseSchedule) {
  const LearningRate rate = rate_of("cifar10", "trivial",
                                    {.piecewise_learning_rate_schedule = read_pieces("0.5;3;0.25"),
                                     .num_learning_rate_warmup_epochs = 1},
                                    {.batch_size = 50, .examples_per_epoch = 50000});
  expect_rates(rate, {{0, 0}, {500, 0.25}, {1000, 0.5}, {2999, 0.5}, {3000, 0.25}});
}

TEST(LearningRate, FallsInThreeStepsForCifarResnet) {
  const LearningRate rate =
      rate_of("cifar10", "resnet20", {}, {.batch_size = 128, .examples_per_epoch = 50000});
  expect_rates(rate, {{0, 0.1},
                      {31980, 0.1},
                      {31981, 0.01},
                      {47970, 0.01},
                      {47971, 0.001},
                      {117000, 0.001},
                      {117001, 0.0002}});
}

TEST(LearningRate, FallsInThreeStepsForDensenet) {
  const LearningRate rate =
      rate_of("cifar10", "densenet40_k12", {}, {.batch_size = 64, .examples_per_epoch = 50000});
  expect_rates(rate, {{0, 0.1}, {117150, 0.1}, {117151, 0.01}, {175726, 0.001}, {234301, 0.0001}});
}

TEST(LearningRate, FallsToATenthEveryHundredEpochsForCifarAlexnet) {
  const LearningRate rate =
      rate_of("cifar10", "alexnet", {}, {.batch_size = 128, .examples_per_epoch = 50000});
  expect_rates(rate, {{0, 0.1}, {39061, 0.1}, {39062, 0.01}, {78123, 0.01}, {78124, 0.001}});
}

TEST(LearningRate, IsConstantAndIgnoresTheWarmUpFlagForOtherModels) {
  const LearningRate rate =
      rate_of("imagenet", "alexnet", {.num_learning_rate_warmup_epochs = 5}, {.batch_size = 512});
  expect_rates(rate, {{0, 0.005}, {10000000, 0.005}});
}

TEST(LearningRate, RejectsFlagsThatContradictEachOther) {
  const auto message = [](std::string_view part) {
    return ThrowsMessage<Error>(HasSubstr(std::string(part)));
  };
  const auto checking = [](const LearningRateOptions& options) {
    return [options] { check_options(options); };
  };
  EXPECT_THAT(checking({.init_learning_rate = 1.0, .learning_rate_decay_factor = 0.5}),
              message("give all three"));
  EXPECT_THAT(checking({.num_epochs_per_decay = 2, .learning_rate_decay_factor = 0.5}),
              message("--init_learning_rate"));
  EXPECT_THAT(checking({.init_learning_rate = 1.0, .minimum_learning_rate = 0.375}),
              message("--minimum_learning_rate needs"));
  EXPECT_THAT(checking({.init_learning_rate = 1.0,
                        .piecewise_learning_rate_schedule = read_pieces("1;3;.1")}),
              message("is the whole schedule"));
}

TEST(LearningRate, RejectsAPiecewiseScheduleItCannotRead) {
  const auto reading = [](const std::string& text) { return [text] { read_pieces(text); }; };
  for (const char* wrong : {"", "1;3", "fast", "1;2.5;.1", "1;3;", "1;;.1", "inf", "1;3;nan"}) {
    EXPECT_THAT(reading(wrong), ThrowsMessage<Error>(HasSubstr("must be LR0;E1;LR1"))) << wrong;
  }
  EXPECT_THAT(reading("1;5;.1;3;.01"), ThrowsMessage<Error>(HasSubstr("must grow")));
}

TEST(LearningRate, RejectsADecayIntervalShorterThanAStep) {
  const LearningRateOptions options{
      .init_learning_rate = 1.0, .num_epochs_per_decay = 0.001, .learning_rate_decay_factor = 0.5};
  EXPECT_THAT(
      ([&] { learning_rate(options, {}, {.batch_size = 100, .examples_per_epoch = 1000}); }),
      ThrowsMessage<Error>(HasSubstr("shorter than one step")));
}

}  // namespace
}  // namespace cnn::models
