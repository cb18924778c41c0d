#include "bench/plan/lms_step.h"

#include <gtest/gtest.h>
#include <limits>

#include "bench/plan/fitting.h"
#include "bench/ranks/rank_context.h"

namespace cnn::bench {
namespace {

// A step of ResNet-50 with LMS within so many MiB, on the P100 of a profile.
struct LimitedStep {
  Config config;
  Backend backend;
  Job job;

  explicit LimitedStep(int limit) {
    config.model.name = "resnet50";
    config.size.batch = 16;
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
  EXPECT_EQ(limited.bucket_bytes, least_bucket_bytes);
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

}  // namespace
}  // namespace cnn::bench
