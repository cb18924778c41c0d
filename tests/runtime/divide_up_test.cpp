#include "runtime/divide_up.h"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

namespace cnn {
namespace {

TEST(DivideUp, CountsThePiecesThatHoldTheNumber) {
  EXPECT_EQ(divide_up(0, 4), 0);
  EXPECT_EQ(divide_up(1, 4), 1);
  EXPECT_EQ(divide_up(4, 4), 1);
  EXPECT_EQ(divide_up(5, 4), 2);
  EXPECT_EQ(divide_up(std::int64_t{7}, 1), 7);
}

TEST(DivideUp, KeepsTheTypeOfTheNumber) {
  constexpr std::size_t large = std::size_t{1} << 40U;
  static_assert(divide_up(large + 1, 1024) == (std::size_t{1} << 30U) + 1);
  constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(divide_up(largest - 1, 2), largest / 2);
}

TEST(RoundUp, ReturnsTheLeastMultipleThatIsNotBelowTheNumber) {
  for (std::int64_t multiple = 1; multiple < 20; ++multiple) {
    for (std::int64_t number = 0; number < 60; ++number) {
      const std::int64_t rounded = round_up(number, multiple);
      EXPECT_EQ(rounded % multiple, 0) << number << " " << multiple;
      EXPECT_GE(rounded, number);
      EXPECT_LT(rounded - number, multiple);
    }
  }
}

}  // namespace
}  // namespace cnn
