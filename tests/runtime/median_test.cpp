#include "runtime/median.h"

#include <gtest/gtest.h>

#include "runtime/error.h"

namespace cnn {
namespace {

TEST(Median, IsTheMiddleOfAnOddNumberOfValues) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({5}), 5);
}

TEST(Median, IsTheMeanOfTheTwoMiddleValuesOfAnEvenNumber) { EXPECT_EQ(median({4, 1, 3, 2}), 2.5); }

TEST(Median, IsRefusedWithoutValues) { EXPECT_THROW(median({}), Error); }

}  // namespace
}  // namespace cnn
