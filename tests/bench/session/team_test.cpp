#include "bench/session/team.h"

#include <array>
#include <gtest/gtest.h>

namespace cnn::bench {
namespace {

TEST(Team, HasTheMeanOfItsRanksAndTheTimeOfTheSlowest) {
  const std::array<StepValues, 2> ranks{
      {{.seconds = 1, .input_wait = 0.5, .base_loss = 2, .l2 = 8, .top_1 = 0, .top_5 = 0.5},
       {.seconds = 3, .input_wait = 0.25, .base_loss = 4, .l2 = 8, .top_1 = 1, .top_5 = 1}}};
  const StepValues all = merge(ranks);
  EXPECT_EQ(all.seconds, 3);
  EXPECT_EQ(all.input_wait, 0.5);
  EXPECT_EQ(all.base_loss, 3);
  EXPECT_EQ(all.l2, 8);
  EXPECT_EQ(all.top_1, 0.5);
  EXPECT_EQ(all.top_5, 0.75);
}

TEST(Team, HasTheValuesOfItsOnlyRankToTheBit) {
  const std::array<StepValues, 1> rank{{{.seconds = 0.1, .base_loss = 0.1 + 0.2, .l2 = 1e-300}}};
  EXPECT_EQ(merge(rank).base_loss, 0.1 + 0.2);
  EXPECT_EQ(merge(rank).l2, 1e-300);
}

}  // namespace
}  // namespace cnn::bench
