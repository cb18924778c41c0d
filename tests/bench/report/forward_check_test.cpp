#include "bench/report/forward_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace cnn::bench {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// NOLINTNEXTLINE(bugprone-exception-escape): moving or destroying a Json does not throw.
struct CheckedForward {
  Json result;
  std::string notes;
};

CheckedForward checked_forward(int steps, const std::string& tensor) {
  CheckedForward run;
  Console console;
  ForwardCheck check(console, run.result, [&] {
    EXPECT_GT(steps, 0) << "no step ran";
    return FirstNonFinite{.tensor = tensor};
  });
  testing::internal::CaptureStderr();
  for (int step = 1; step <= steps; ++step) {
    check.step_finished({.number = step});
  }
  check.end({.global_step = steps});
  run.notes = testing::internal::GetCapturedStderr();
  return run;
}

TEST(ForwardCheck, NamesATensorThatIsNotFinite) {
  const CheckedForward run = checked_forward(2, "v/cg/conv0/biases (5 of 32 values)");
  EXPECT_THAT(run.notes, HasSubstr("forward only, global step 2: the first tensor in memory that "
                                   "is not finite is v/cg/conv0/biases (5 of 32 values); examples "
                                   "whose logits are not finite count as wrong"));
  EXPECT_EQ(run.result["non_finite"], "v/cg/conv0/biases (5 of 32 values)");
}

TEST(ForwardCheck, IsSilentWhereAllIsFiniteOrNothingRan) {
  EXPECT_THAT(checked_forward(2, "").notes, IsEmpty());
  EXPECT_FALSE(checked_forward(2, "").result.contains("non_finite"));
  EXPECT_THAT(checked_forward(0, "images").notes, IsEmpty());
}

}  // namespace
}  // namespace cnn::bench
