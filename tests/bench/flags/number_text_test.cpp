#include "bench/flags/number_text.h"

#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

namespace cnn::bench {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(NumberText, ReadsWholeNumbersCompletely) {
  EXPECT_EQ(read_integer("42"), 42);
  EXPECT_EQ(read_integer("-7"), -7);
  EXPECT_EQ(read_integer("+7"), 7);
  for (const char* wrong : {"", "+", "+-1", "1.0", "1e3", " 1", "1 ", "9223372036854775808"}) {
    EXPECT_EQ(read_integer(wrong), std::nullopt) << wrong;
  }
}

TEST(NumberText, ReadsFiniteFloatsCompletely) {
  EXPECT_EQ(read_float("1e-3"), 0.001);
  EXPECT_EQ(read_float("-.5"), -0.5);
  EXPECT_EQ(read_float("3"), 3.0);
  for (const char* wrong : {"", "nan", "inf", "-inf", "1e999", "1f", "0x1p3"}) {
    EXPECT_EQ(read_float(wrong), std::nullopt) << wrong;
  }
}

TEST(NumberText, ReadsWholeNumbersOf32BitsAndNoRemainderOfLongerOnes) {
  EXPECT_EQ(read_integer_of_32_bits("2147483647"), 2147483647);
  for (const char* wrong : {"2147483648", "5000000000", "0x10", "1.5"}) {
    EXPECT_EQ(read_integer_of_32_bits(wrong), std::nullopt) << wrong;
  }
}

TEST(NumberText, ReadsSwitches) {
  EXPECT_EQ(read_switch("TRUE"), true);
  EXPECT_EQ(read_switch("f"), false);
  EXPECT_EQ(read_switch("yes"), std::nullopt);
}

TEST(NumberText, WritesFixedPointLikeTheOriginal) {
  EXPECT_EQ(fixed(42.10526, 1), "42.1");
  EXPECT_EQ(fixed(7.5929, 3), "7.593");
  EXPECT_EQ(fixed(0.125, 2), "0.12");  // 0.125 is an exact tie, which rounds to even
  EXPECT_EQ(fixed(nan, 3), "nan");
  EXPECT_EQ(fixed(-nan, 3), "nan");
  EXPECT_EQ(fixed(inf, 1), "inf");
  EXPECT_EQ(fixed(-inf, 1), "-inf");
}

TEST(NumberText, WritesTheShortestFloat) {
  EXPECT_EQ(shortest(0.4), "0.4");
  EXPECT_EQ(shortest(1), "1.0");
  EXPECT_EQ(shortest(1e-5), "1e-05");
  EXPECT_EQ(shortest(1e16), "1e+16");
  EXPECT_EQ(shortest(inf), "inf");
  EXPECT_EQ(shortest(-nan), "nan");
}

TEST(NumberText, WritesMemoryInTheLargestUnitOfWhichThereIsOne) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(bytes_text(432U << 20U), "432.00 MiB");
  EXPECT_EQ(bytes_text(std::size_t{3} << 29U), "1.50 GiB");
}

TEST(NumberText, QuotesLists) {
  EXPECT_EQ(quoted_list(std::vector<std::string>{}), "[]");
  EXPECT_EQ(quoted_list(std::vector<std::string>{"/cpu:0"}), "['/cpu:0']");
  EXPECT_EQ(quoted_list(std::vector<std::string>{"a", "b"}), "['a', 'b']");
}

}  // namespace
}  // namespace cnn::bench
