#include "bench/plan/lms_step.h"

#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <string>

#include "bench/plan/fitting.h"
#include "bench/ranks/rank_context.h"

namespace cnn::bench {
namespace {

// A step of ResNet-50 with LMS within so many MiB, on the P100 of a profile.
struct LimitedStep {
  Config config;
  Backend backend;
  Job job;

  explicit LimitedStep(int limit) : LimitedStep("resnet50", 16, limit) {}
  // Images of 224 x 224 and wide convolutions: most of the memory is that of two maps.
  LimitedStep(const BatchSlices& slices, int limit) : LimitedStep("vgg11", 64, limit, slices) {}
  LimitedStep(const std::string& model, int batch, int limit, const BatchSlices& slices = {}) {
    config.model.name = model;
    config.size.batch = batch;
    config.lms.slices = slices;
    config.lms.variants = LmsVariants::any;
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

constexpr int tight = 1200;  // MiB, in which VGG-11 has no plan for its whole batch

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

}  // namespace
}  // namespace cnn::bench
