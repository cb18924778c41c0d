#include "allreduce/progress.h"

#include <gtest/gtest.h>

namespace cnn::allreduce {
namespace {

TEST(Progress, EncodesPhaseAndStepInOneWord) {
  EXPECT_EQ(progress_text(0), "");
  EXPECT_EQ(progress_text(progress_at(Phase::input, 4)), "waits for the examples of step 5");
  EXPECT_EQ(progress_text(progress_at(Phase::compute, 0)), "computes step 1");
  EXPECT_EQ(progress_text(progress_at(Phase::between, 1'000'000'000'000)),
            "has ended step 1000000000001");
}

TEST(ExchangePosition, NamesStepBucketAndPhase) {
  EXPECT_EQ(position_text({.progress = progress_at(Phase::compute, 16),
                           .reductions = 3,
                           .bucket = 4,
                           .phase = "reduce-scatter"}),
            "step 17, bucket 4, reduce-scatter");
}

TEST(ExchangePosition, CountsReductionsInAProgramWithoutSteps) {
  EXPECT_EQ(position_text({.reductions = 17, .bucket = 4, .phase = "all-gather"}),
            "reduction 17 of bucket 4, all-gather");
}

}  // namespace
}  // namespace cnn::allreduce
