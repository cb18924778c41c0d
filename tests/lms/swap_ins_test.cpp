#include "lms/swap_ins.h"

#include <gtest/gtest.h>

namespace cnn::lms {
namespace {

constexpr TensorId tensor{7};

std::vector<StepId> steps(std::initializer_list<std::uint32_t> numbers) {
  std::vector<StepId> result;
  for (const std::uint32_t number : numbers) {
    result.push_back(StepId{number});
  }
  return result;
}

TEST(SwapIns, ComeWithTheirTriggers) {
  const auto swaps =
      one_at_a_time({.tensor = tensor,
                     .out_behind = StepId{3},
                     .swap_ins = {{.readers = steps({10, 12}), .not_before = StepId{8}}}});
  ASSERT_EQ(swaps.size(), 1U);
  EXPECT_EQ(swaps[0].tensor, tensor);
  EXPECT_EQ(swaps[0].out_behind, StepId{3});
  EXPECT_EQ(swaps[0].back_before, StepId{10});
  EXPECT_EQ(swaps[0].not_before, StepId{8});
  EXPECT_FALSE(swaps[0].on_host);
}

TEST(SwapIns, StartWhenTheTensorIsOutAtTheEarliest) {
  const auto swaps =
      one_at_a_time({.tensor = tensor,
                     .out_behind = StepId{3},
                     .swap_ins = {{.readers = steps({10}), .not_before = StepId{1}}}});
  EXPECT_EQ(swaps.at(0).not_before, StepId{3});
}

// Triggers follow the graph's levels, whose order differs from the order of steps.
TEST(SwapIns, StartRightBeforeAReaderThatComesBeforeTheirTrigger) {
  for (const StepId trigger : {StepId{10}, StepId{11}}) {
    const auto swaps =
        one_at_a_time({.tensor = tensor,
                       .out_behind = StepId{3},
                       .swap_ins = {{.readers = steps({10, 12}), .not_before = trigger}}});
    ASSERT_EQ(swaps.size(), 1U);
    EXPECT_EQ(swaps[0].back_before, StepId{10});
    EXPECT_FALSE(swaps[0].not_before);
  }
}

TEST(SwapIns, AreSharedWhereTheyWouldOverlap) {
  const auto swaps =
      one_at_a_time({.tensor = tensor,
                     .out_behind = StepId{3},
                     .swap_ins = {{.readers = steps({20}), .not_before = StepId{14}},
                                  {.readers = steps({10, 15}), .not_before = StepId{8}}}});
  ASSERT_EQ(swaps.size(), 1U);
  EXPECT_EQ(swaps[0].back_before, StepId{10});
}

TEST(SwapIns, NeedNoSecondCopyOut) {
  const auto swaps =
      one_at_a_time({.tensor = tensor,
                     .out_behind = StepId{3},
                     .swap_ins = {{.readers = steps({10, 12}), .not_before = StepId{8}},
                                  {.readers = steps({20}), .not_before = std::nullopt}}});
  ASSERT_EQ(swaps.size(), 2U);
  EXPECT_EQ(swaps[1].out_behind, StepId{12});
  EXPECT_EQ(swaps[1].back_before, StepId{20});
  EXPECT_FALSE(swaps[1].not_before);
  EXPECT_TRUE(swaps[1].on_host);
}

TEST(SwapIns, AreNotMadeForReadersThatHaveTheTensorItself) {
  EXPECT_TRUE(one_at_a_time({.tensor = tensor,
                             .out_behind = StepId{10},
                             .swap_ins = {{.readers = steps({5, 10}), .not_before = StepId{4}}}})
                  .empty());
}

}  // namespace
}  // namespace cnn::lms
