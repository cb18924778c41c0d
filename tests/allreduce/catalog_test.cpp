#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "allreduce/algorithm.h"
#include "tests/support/error_of.h"

namespace cnn::allreduce {
namespace {

using tests::error_of;

TEST(Catalog, CountsTheRanksOfAGridWithoutOverflow) {
  EXPECT_EQ(ranks_of_grid({}), 1);
  EXPECT_EQ(ranks_of_grid(std::vector{65536, 65536}), std::int64_t{1} << 32U);
  EXPECT_EQ(ranks_of_grid(std::vector{3, 1431655766}), 4294967298);
  EXPECT_EQ(ranks_of_grid(std::vector{65536, 65536, 65536, 65536, 2}),
            std::numeric_limits<std::int64_t>::max());
}

TEST(Catalog, FindsEachRowByItsOwnName) {
  std::set<std::string_view> names;
  for (const Algorithm& row : catalog()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.about.empty()) << row.name;
    ASSERT_NE(row.plan, nullptr) << row.name;
    EXPECT_EQ(&find(row.name), &row);
  }
}

TEST(Catalog, ChecksTheNumbersOfAPlan) {
  const Topology two = ranks_on_hosts(1, 2);
  EXPECT_EQ(error_of([&] { make_plan(find("ring"), two, 2, 10, {}); }),
            "an all-reduce has no rank 2");
  EXPECT_EQ(error_of([&] { make_plan(find("ring"), two, 0, 10, {.chunks = 0}); }),
            "rings, chunks and window of an all-reduce must be positive");
  EXPECT_EQ(error_of([&] {
              make_plan(find("weighted"), {{0, 0}, {1.0}}, 0, 10, {});
            }),
            "an all-reduce needs the speed of each rank's link, or of none");
}

TEST(Topology, KnowsHostsAndNodesOfItsRanks) {
  EXPECT_EQ(ranks_on_hosts(2, 2).host_of, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_TRUE(ranks_on_hosts(1, 3).one_host());
  EXPECT_FALSE(ranks_on_hosts(3, 1).one_host());
  const Topology topology{{0, 0, 1}, {}, {0, 1, 0}};
  EXPECT_FALSE(topology.same_node(0, 1));  // another node
  EXPECT_FALSE(topology.same_node(0, 2));  // another host
  EXPECT_TRUE(topology.same_node(2, 2));
}

TEST(Catalog, RefusesOptionsThatAnAlgorithmCannotServe) {
  const Topology four = ranks_on_hosts(2, 2);
  const auto error = [&](const std::string& name, const Options& options) {
    return error_of([&] { make_plan(find(name), four, 0, 10, options); });
  };
  EXPECT_EQ(error("rong", {}),
            "no all-reduce is called 'rong'; use one of ring, multi_ring, direct, grid_of_rings, "
            "grid_of_direct, doubling, halving, tree, weighted, shuffle, shared, shared_by_node, "
            "shared_rings, shared_direct");
  EXPECT_EQ(error("grid_of_rings", {.dims = {3, 2}}),
            "invalid dimensions 3x2: their product is 6, there are 4 ranks");
  EXPECT_NE(error("ring", {.order = Order::rank}), "");
  EXPECT_NE(error("doubling", {.order = Order::rank}), "");
  EXPECT_EQ(error("doubling", {.order = Order::tree}), "");
  EXPECT_NE(error("ring", {.wire = Wire::bf16}), "");
  EXPECT_NE(error("ring", {.dims = {4}}), "");
  EXPECT_EQ(error("shared", {}), "all-reduce 'shared' needs all ranks on one host");
  EXPECT_EQ(error("shared_direct", {.dims = {2, 2}}), "");
  EXPECT_EQ(error("shared_direct", {.dims = {4, 1}}),
            "all-reduce 'shared_direct' needs ranks of one host in each group of its first "
            "dimension");
}

}  // namespace
}  // namespace cnn::allreduce
