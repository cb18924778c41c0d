#include "bench/all_reduce/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

std::string option_error(const Words& words) {
  return tests::error_of([&] { parse_reduce_options(words); });
}

TEST(ReduceOptions, ComeBesideTheFlagsOfTheSuite) {
  const ReduceOptions options = parse_reduce_options(Words{
      "-b", "4K", "--model=resnet50", "-e", "16M", "--iters=7", "--batch_size", "3", "-c", "0"});
  EXPECT_EQ(options.least, 4096U);
  EXPECT_EQ(options.most, 16U << 20U);
  EXPECT_EQ(options.iterations, 7);
  EXPECT_FALSE(options.check);
  EXPECT_TRUE(options.table());
  EXPECT_THAT(options.suite, ElementsAre("--model=resnet50", "--batch_size", "3"));
  EXPECT_FALSE(parse_reduce_options(Words{}).table());
}

TEST(ReduceOptions, HaveSizesByAFactorOrAStep) {
  EXPECT_THAT(parse_reduce_options(Words{"-b", "8", "-e", "70"}).sizes(),
              ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(parse_reduce_options(Words{"-b", "8", "-e", "1000", "-f", "10"}).sizes(),
              ElementsAre(8, 80, 800));
  EXPECT_THAT(parse_reduce_options(Words{"-b", "8", "-e", "20", "-i", "6"}).sizes(),
              ElementsAre(8, 12, 20));  // rounded to whole elements
  EXPECT_THAT(parse_reduce_options(Words{"-e", "1M"}).sizes(), ElementsAre(1 << 20));
  EXPECT_THAT(parse_reduce_options(Words{"-b", "1"}).sizes(), ElementsAre(4));
}

TEST(ReduceOptions, HaveEachSizeInWholeElementsOnce) {
  EXPECT_THAT(parse_reduce_options(Words{"-b", "1", "-e", "16"}).sizes(), ElementsAre(4, 8, 16));
  EXPECT_THAT(parse_reduce_options(Words{"-b", "6", "-e", "13", "-i", "1"}).sizes(),
              ElementsAre(4, 8, 12));
}

TEST(ReduceOptions, HaveNoMoreSizesThanATableShows) {
  EXPECT_EQ(option_error({"-b", "1M", "-e", "1G", "-i", "4"}),
            "-i 4 makes 268173313 sizes from -b to -e; take larger steps, for at most 10000");
  EXPECT_EQ(parse_reduce_options(Words{"-b", "4", "-e", "40000", "-i", "4"}).sizes().size(),
            10000U);
}

TEST(ReduceOptions, AreComparedBetweenRanks) {
  EXPECT_EQ(compared_text({.least = 8, .factor = 1.5, .copies = false, .json = "rows.json"}),
            "-b 8\n-e not set\n-f 1.5\n-i 0\n-n 20\n-w 5\n--iters_per_step=5\n-c 1\n--memcpy=0\n"
            "--compare=nothing\n");
}

TEST(ReduceOptions, AreRefusedByName) {
  EXPECT_THAT(option_error({"-b", "4Q"}), HasSubstr("-b 4Q: must be a number of bytes"));
  EXPECT_THAT(option_error({"-b", "0"}), HasSubstr("-b 0"));
  EXPECT_THAT(option_error({"-n", "none"}), HasSubstr("-n none"));
  EXPECT_THAT(option_error({"-n"}), HasSubstr("-n needs a value"));
  EXPECT_THAT(option_error({"-d", "half"}), HasSubstr("--comm_wire"));
  EXPECT_THAT(option_error({"--compare=nccl"}), HasSubstr("must be mpi"));
  EXPECT_THAT(option_error({"-b", "2M", "-e", "1M"}), HasSubstr("no size between"));
}

}  // namespace
}  // namespace cnn::bench
