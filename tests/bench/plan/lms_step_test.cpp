#include "bench/plan/lms_step.h"

#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <string>

#include "bench/plan/fitting.h"
#include "bench/ranks/rank_context.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn::bench {
namespace {

// A step of ResNet-50 with LMS within `limit` MiB, on a profile's P100.
struct LimitedStep {
  Config config;
  Backend backend;
  Job job;

  explicit LimitedStep(int limit) : LimitedStep("resnet50", 16, limit) {}
  // VGG-11 on images of 224 x 224 has wide convolutions, so two of its maps take most of the
  // memory.
  LimitedStep(const BatchSlices& slices, int limit) : LimitedStep("vgg11", 64, limit, slices) {}
  LimitedStep(const std::string& model, int batch, int limit, const BatchSlices& slices = {}) {
    config.model.name = model;
    config.size.batch = batch;
    config.lms.slices = slices;
    config.lms.variants = LmsVariants::any;
    config.lms.variables = LmsVariables::off;
    config.gpu.simulate = "p100-pcie3";
    config.lms.enabled = true;
    config.lms.limit = limit;
    backend = make_backend(config, {});
    job = make_job(config, only_rank(backend));
  }
  LmsStep planned() const {
    const Sizes sizes = sizes_of(job);
    const RankContext context = only_rank(backend);
    return plan_step(job, context, sizes, compile_programs(job, context, sizes));
  }
};

TEST(LmsStep, HasTheSmallestUpdatesWhereItDoesNotFitAsItIs) {
  const LimitedStep small(800), large(8000);
  const LmsStep limited = small.planned(), whole = large.planned();
  EXPECT_EQ(limited.bucket_bytes, min_bucket_bytes);
  EXPECT_TRUE(limited.planner.report().fits);
  EXPECT_FALSE(whole.bucket_bytes.has_value());
  EXPECT_FALSE(whole.planner.report().necessary);
}

TEST(LmsStep, IsNotSlowerInALargerBudget) {
  double seconds = std::numeric_limits<double>::infinity();
  for (const int limit : {600, 800, 1100}) {
    const LimitedStep step(limit);
    const LmsStep planned = step.planned();
    ASSERT_TRUE(planned.planner.report().fits) << limit;
    EXPECT_LE(planned.planner.report().predicted_seconds, seconds) << limit;
    seconds = planned.planner.report().predicted_seconds;
  }
}

constexpr int tight = 1200;  // MiB; VGG-11 has no plan for its whole batch in them

std::size_t min_bytes(const LimitedStep& step) {
  const RankContext context = only_rank(step.backend);
  const Sizes sizes = sizes_of(step.job);
  return min_step_bytes(step.job, context, sizes, compile_programs(step.job, context, sizes));
}

constexpr BatchSlices whole_batch{}, in_four{4}, chosen{std::nullopt};

TEST(LmsStep, InSlicesOfTheFlagHasALowerFloor) {
  const LimitedStep whole(whole_batch, 100), sliced(in_four, 100);
  EXPECT_LT(min_bytes(sliced), min_bytes(whole) * 3 / 4);
  const LmsStep planned = sliced.planned();
  EXPECT_EQ(planned.planner.report().slicing.slices, 4);
  EXPECT_EQ(planned.planner.latest().slices, 4);
}

TEST(LmsStep, ChoosesSlicesOnlyWhereTheFlagsLetIt) {
  LimitedStep step(chosen, tight);
  const LmsStep planned = step.planned();
  EXPECT_GT(planned.planner.report().slicing.slices, 1);
  EXPECT_TRUE(planned.planner.report().fits);
  step.config.lms.variants = LmsVariants::same;
  const LmsStep whole = step.planned();
  EXPECT_EQ(whole.planner.report().slicing.slices, 1);
  EXPECT_FALSE(whole.planner.report().fits);
}

TEST(LmsStep, WithSlicesOfItsChoiceIsNotSlowerInALargerBudget) {
  double seconds = std::numeric_limits<double>::infinity();
  std::set<std::int64_t> slices;
  for (const int limit : {tight, 1600, 2000, 2400, 3000, 4000, 8000}) {
    const LimitedStep step(chosen, limit);
    const LmsStep planned = step.planned();
    const LmsReport& report = planned.planner.report();
    ASSERT_TRUE(report.fits) << limit;
    EXPECT_LE(report.predicted_seconds, seconds) << limit;
    EXPECT_LE(report.lower_bound_seconds, report.predicted_seconds * (1 + 1e-9)) << limit;
    seconds = report.predicted_seconds;
    slices.insert(report.slicing.slices);
  }
  EXPECT_GT(slices.size(), 1);
}

TEST(LmsStep, CountsSlicesInTheLeastThatAnyPlanTakes) {
  const LimitedStep whole(whole_batch, 100), any(chosen, 100);
  const std::size_t least = min_bytes(any);
  EXPECT_LT(least, min_bytes(whole));
  EXPECT_EQ(any.planned().planner.report().floor, least);
}

// A step of one large image, whose first maps take most of the memory.
struct LargeImage : LimitedStep {
  explicit LargeImage(int limit, std::optional<int> row_slices = 1)
      : LimitedStep("googlenet", 1, limit) {
    job.image_size = 2048;
    config.lms.row_slices.count = row_slices;
  }
};

TEST(LmsStep, InSlicesOfRowsHasALowerFloor) {
  const LargeImage whole(100), sliced(100, 8);
  EXPECT_LT(min_bytes(sliced), min_bytes(whole) * 3 / 4);
  const LmsStep planned = sliced.planned();
  EXPECT_EQ(planned.planner.report().slicing.row_slices_made(), 8);
  EXPECT_EQ(planned.planner.latest().row_slices, 8);
}

TEST(LmsStep, CountsSlicesOfRowsInTheLeastOnlyWhereTheFlagsLetIt) {
  const std::size_t whole = min_bytes(LargeImage(100));
  LargeImage step(100, std::nullopt);
  EXPECT_LT(min_bytes(step), whole * 3 / 4);
  step.config.lms.variants = LmsVariants::same;
  EXPECT_EQ(min_bytes(step), whole);
}

TEST(LmsStep, HasNoMoreSlicesOfRowsThanTheLastMapHasRows) {
  LargeImage step(100, 16);
  step.job.image_size = 224;
  const LmsStep planned = step.planned();
  EXPECT_EQ(planned.planner.report().slicing.row_slices_made(), 7);
}

constexpr BatchSlices in_eight{8};

TEST(LmsStep, HasALowerFloorWithVariablesOnTheHost) {
  const LimitedStep off(in_eight, 100);
  LimitedStep automatic(in_eight, 100);
  automatic.config.lms.variables = LmsVariables::automatic;
  const std::size_t without = min_bytes(off), with = min_bytes(automatic);
  EXPECT_LT(with, without * 2 / 3);
  EXPECT_EQ(automatic.planned().planner.report().floor, with);
  EXPECT_EQ(off.planned().planner.report().floor, without);
}

TEST(LmsStep, PutsVariablesOnTheHostOnlyWhereNothingElseFits) {
  const LimitedStep off(whole_batch, 100);
  const auto floor = static_cast<int>(min_bytes(off) >> 20U);
  for (const int limit : {floor * 2, floor + 1, floor - 1, floor * 4 / 5}) {
    LimitedStep step(whole_batch, limit);
    step.config.lms.variables = LmsVariables::automatic;
    const LmsStep planned = step.planned();
    const LmsReport& report = planned.planner.report();
    ASSERT_TRUE(report.fits) << limit;
    EXPECT_EQ(report.host_variable_bytes > 0, limit < floor) << limit;
    EXPECT_EQ(planned.planner.latest().host_variables, limit < floor) << limit;
    EXPECT_EQ(planned.programs.variables().host_bytes(), report.host_variable_bytes);
    EXPECT_LE(report.lower_bound_seconds, report.predicted_seconds * (1 + 1e-9)) << limit;
    // A floor is a multiple of the alignment, to which the last tensor of a plan need not reach.
    EXPECT_LE(report.floor, aligned(report.peak)) << limit;
  }
}

// The weights of the largest dense layer, or their gradient, take 392 MiB.
TEST(LmsStep, ComputesDenseLayersInSlicesOnlyWhereVariablesLieOnTheHostAndTheFlagsLetIt) {
  LimitedStep hosted(in_eight, 100), any(in_eight, 100);
  for (LimitedStep* const step : {&hosted, &any}) {
    step->config.lms.variables = LmsVariables::automatic;
  }
  any.config.lms.dense_slices.count.reset();
  const std::size_t whole = min_bytes(hosted), sliced = min_bytes(any);
  EXPECT_LT(sliced + (std::size_t{200} << 20U), whole);
  double seconds = std::numeric_limits<double>::infinity();
  constexpr std::size_t mib = std::size_t{1} << 20U;
  for (const std::size_t limit : {sliced / mib + 1, whole / mib + 1}) {
    LimitedStep step(in_eight, static_cast<int>(limit));
    step.config.lms.variables = LmsVariables::automatic;
    step.config.lms.dense_slices.count.reset();
    const LmsStep planned = step.planned();
    const LmsReport& report = planned.planner.report();
    ASSERT_TRUE(report.fits) << limit;
    EXPECT_LE(report.predicted_seconds, seconds) << limit;
    EXPECT_LE(report.lower_bound_seconds, report.predicted_seconds * (1 + 1e-9)) << limit;
    seconds = report.predicted_seconds;
    EXPECT_EQ(planned.planner.latest().dense_slices > 1, report.slicing.is_dense_sliced());
    EXPECT_TRUE(report.slicing.is_dense_sliced() || limit * mib >= whole) << limit;
    EXPECT_TRUE(!report.slicing.is_dense_sliced() || report.host_variable_bytes > 0) << limit;
  }
  any.config.lms.variants = LmsVariants::same;
  EXPECT_EQ(min_bytes(any), whole);
}

// Loads and stores take at least the time of the link, whatever the plan.
TEST(LmsStep, BoundsTheTimeOfVariablesThatMove) {
  LimitedStep step(whole_batch, 2100);
  step.config.lms.variables = LmsVariables::on;
  const LmsStep planned = step.planned();
  const LmsReport& report = planned.planner.report();
  const Costs costs = expected_costs(planned.unlimited, step.backend);
  const auto moved = static_cast<double>(report.host_variable_bytes);
  EXPECT_GE(report.lower_bound_seconds, 2.9 * moved / costs.in_bytes_per_second);
  EXPECT_LE(report.lower_bound_seconds, report.predicted_seconds * (1 + 1e-9));
}

TEST(LmsStep, RefusesVariablesOnTheHostInSixteenBits) {
  LimitedStep step(whole_batch, 100);
  step.config.lms.variables = LmsVariables::on;
  step.job.compute = DataType::f16;
  const RankContext context = only_rank(step.backend);
  EXPECT_THROW((void)compile_programs(step.job, context, sizes_of(step.job)), Error);
}

}  // namespace
}  // namespace cnn::bench
