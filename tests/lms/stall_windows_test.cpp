#include "lms/stall_windows.h"

#include <gtest/gtest.h>

#include "lms/bound.h"
#include "tests/lms/problem.h"

namespace cnn::lms {
namespace {

using tests::uniform_chain;

double seconds(double out, double in, std::size_t device_units, bool repeats) {
  tests::Problem chain = uniform_chain(10);
  chain.limit(device_units, out, in);
  return seconds_in_windows(chain.request(), pressure(chain.request()), repeats);
}

TEST(StallWindows, AreEmptyWhereEverythingFits) { EXPECT_EQ(seconds(0.1, 0.1, 10, false), 0); }

TEST(StallWindows, AreEmptyWhereCopiesAreHidden) { EXPECT_EQ(seconds(1, 1, 4, false), 0); }

TEST(StallWindows, GrowAsMemoryShrinksAndTheLinkSlows) {
  const double wide = seconds(0.25, 0.25, 4, false);
  EXPECT_GT(seconds(0.25, 0.25, 2, false), 0);
  EXPECT_GE(seconds(0.25, 0.25, 2, false), wide);
  EXPECT_GE(seconds(0.25, 0.125, 2, false), seconds(0.25, 0.25, 2, false));
}

TEST(StallWindows, CostNoMoreWhereNodesMayRunAgain) {
  EXPECT_LE(seconds(0.25, 0.125, 2, true), seconds(0.25, 0.125, 2, false));
}

}  // namespace
}  // namespace cnn::lms
