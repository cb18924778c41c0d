// Removes a wait on purpose and checks that copy jitter reveals the race. Sanitizer builds leave
// this file out because they would stop at the race.
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "runtime/cpu/device.h"
#include "runtime/program.h"
#include "tests/support/error_of.h"
#include "tests/support/swapping_step.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using ::testing::HasSubstr;
using tests::error_of;
using tests::swapping_plan;
using tests::test_kernels;
using tests::TestStep;

TEST(CopyJitter, ShowsAWaitThatIsMissing) {
  const StepPlan plan = swapping_plan();
  StepPlan broken = plan;
  ASSERT_EQ(broken.schedule.steps[6].after.size(), 1U);
  broken.schedule.steps[6].after.clear();  // now d may run before a is back
  EXPECT_THAT(error_of([&] { verify(broken); }), HasSubstr("does not wait for"));
  const auto outcome = [](const StepPlan& plan, unsigned seed) {
    TestStep step(plan, test_kernels(),
                  {.copy_jitter = {.longest = std::chrono::milliseconds(5), .seed = seed}});
    step.run();
    return step.outcome();
  };
  bool shown = false;
  for (unsigned seed = 0; seed < 20; ++seed) {
    EXPECT_TRUE(tests::identical(outcome(plan, seed), outcome(plan, seed + 1)));
    shown = shown || !tests::identical(outcome(plan, seed), outcome(broken, seed));
  }
  EXPECT_TRUE(shown);
}

}  // namespace
}  // namespace cnn
