#include "bench/flags/reduce_spec.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

std::string spec_error(const std::string& spec) {
  return tests::error_of([&] { parse_reduce_spec(spec); });
}

TEST(ReduceSpec, HasTheOriginalsRanges) {
  const std::vector<AlgorithmSpec> algorithms = parse_reduce_spec("pscpu:2k:pscpu#2:64K:xring");
  ASSERT_EQ(algorithms.size(), 3U);
  EXPECT_EQ(algorithms[0].name, "pscpu");
  EXPECT_EQ(algorithms[0].shards, 1);
  EXPECT_EQ(algorithms[0].most, 2048);
  EXPECT_EQ(algorithms[1].shards, 2);
  EXPECT_EQ(algorithms[1].most, 65536);
  EXPECT_EQ(algorithms[2].name, "xring");
  EXPECT_FALSE(algorithms[2].most);
  EXPECT_EQ(parse_reduce_spec("nccl:3M:xring")[0].most, 3 << 20);
  const AlgorithmSpec pair = parse_reduce_spec("pscpu/pscpu#2")[0];
  EXPECT_EQ(pair.name, "pscpu/pscpu");
  EXPECT_EQ(pair.shards, 2);
}

TEST(ReduceSpec, TakesDimensionsAndChunksOfOurs) {
  const std::vector<AlgorithmSpec> algorithms = parse_reduce_spec("rd:1k:direct#2@4x8x8%16");
  EXPECT_EQ(algorithms[0].name, "rd");
  EXPECT_EQ(algorithms[1].name, "direct");
  EXPECT_EQ(algorithms[1].shards, 2);
  EXPECT_EQ(algorithms[1].dims, (std::vector<int>{4, 8, 8}));
  EXPECT_EQ(algorithms[1].chunks, 16);
}

TEST(ReduceSpec, IsRefusedInTheOriginalsWords) {
  EXPECT_EQ(spec_error("nccl:2k"), "all_reduce_spec not well formed: nccl:2k");
  EXPECT_EQ(spec_error("nccl:x:xring"),
            "all_reduce_spec (nccl:x:xring) contains non-integer range x");
  EXPECT_EQ(spec_error("nccl:0:xring"),
            "all_reduce_spec (nccl:0:xring) contains non-integer range 0");
  EXPECT_EQ(spec_error("ncll"),
            "all_reduce_spec (ncll) contains invalid alg ncll; did you mean nccl?");
  EXPECT_EQ(spec_error(""), "all_reduce_spec () contains invalid alg ");
  EXPECT_NE(spec_error("xring#"), "");
  EXPECT_NE(spec_error("xring#-1"), "");
  EXPECT_NE(spec_error("direct@4x"), "");
  EXPECT_NE(spec_error("tree@4"), "");
  EXPECT_NE(spec_error("collective#3"), "");
  EXPECT_NE(spec_error("rd:99999999999T:rd"), "");
}

}  // namespace
}  // namespace cnn::bench
