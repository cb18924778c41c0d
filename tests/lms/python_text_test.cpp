#include "lms/python_text.h"

#include <gtest/gtest.h>

namespace cnn::lms {
namespace {

TEST(PythonText, WritesNumbersAsPythonDoes) {
  EXPECT_EQ(python_text(64), "64.0");
  EXPECT_EQ(python_text(0.9), "0.9");
  EXPECT_EQ(python_text(799.3814945220947), "799.3814945220947");
  EXPECT_EQ(python_text(1e-7), "1e-07");
}

TEST(PythonText, DropsZerosOfRoundedNumbers) {
  EXPECT_EQ(rounded_text(20.3299), "20.33");
  EXPECT_EQ(rounded_text(0.5), "0.5");
  EXPECT_EQ(rounded_text(64), "64.0");
  EXPECT_EQ(rounded_text(-0.0912), "-0.09");
  EXPECT_EQ(rounded_text(100.001), "100.0");
}

TEST(PythonText, CountsBytes) {
  EXPECT_EQ(gib_text(std::uint64_t{64} << 30U), "64.0");
  EXPECT_EQ(gib_text(std::uint64_t{3} << 29U), "1.5");
  EXPECT_EQ(mib_text(std::uint64_t{97} << 20U), "97.0");
}

}  // namespace
}  // namespace cnn::lms
