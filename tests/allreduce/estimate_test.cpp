#include "allreduce/estimate.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "allreduce/algorithm.h"

namespace cnn::allreduce {
namespace {

// No time but that of bytes: 1 GB/s within a host, 0.5 GB/s between hosts.
constexpr Links bytes_only{.latency = 0, .rank = 1e9, .host = 0.5e9};
constexpr std::size_t million = 1'000'000;

Estimate estimated(const std::string& algorithm, const Topology& topology, const Links& links,
                   const Options& options = {}, std::size_t elements = million) {
  return estimate(find(algorithm), options, topology, elements, links);
}

TEST(Estimate, IsNothingForARankThatIsAlone) {
  for (const Algorithm& algorithm : catalog()) {
    const Estimate alone = estimate(algorithm, {.dims = {1}}, ranks_on_hosts(1, 1), million, {});
    EXPECT_EQ(alone.seconds, 0) << algorithm.name;
    EXPECT_EQ(alone.messages, 0) << algorithm.name;
  }
}

TEST(Estimate, TakesTheBytesOfARing) {
  EXPECT_DOUBLE_EQ(estimated("ring", ranks_on_hosts(1, 4), bytes_only).seconds, 2 * 0.75 * 4e-3);
  EXPECT_DOUBLE_EQ(estimated("ring", ranks_on_hosts(4, 1), bytes_only).seconds, 2 * 0.75 * 8e-3);
  EXPECT_DOUBLE_EQ(estimated("ring", ranks_on_hosts(2, 2), bytes_only).seconds, 2 * 0.75 * 8e-3)
      << "one rank of a host sends to the next host";
}

TEST(Estimate, HalvesTheBytesOfA16BitWire) {
  const Options narrow{.wire = Wire::bf16};
  EXPECT_DOUBLE_EQ(estimated("direct", ranks_on_hosts(1, 4), bytes_only, narrow).seconds,
                   estimated("direct", ranks_on_hosts(1, 4), bytes_only).seconds / 2);
}

TEST(Estimate, TakesLatencyAndPostingOfEveryStep) {
  const Links slow_start{.latency = 1e-3, .post = 1e-4, .rank = 1e30, .host = 1e30};
  EXPECT_NEAR(estimated("ring", ranks_on_hosts(1, 4), slow_start).seconds, 6 * 1.2e-3, 1e-9);
  EXPECT_NEAR(estimated("doubling", ranks_on_hosts(1, 8), slow_start).seconds, 3 * 1.2e-3, 1e-9);
  EXPECT_NEAR(estimated("halving", ranks_on_hosts(1, 8), slow_start).seconds, 6 * 1.2e-3, 1e-9);
  EXPECT_NEAR(estimated("direct", ranks_on_hosts(1, 4), slow_start).seconds, 2 * 1.6e-3, 1e-9);
}

TEST(Estimate, CountsTheMessagesOfAllRanks) {
  EXPECT_EQ(estimated("ring", ranks_on_hosts(1, 4), {}).messages, 4 * 6);
  EXPECT_EQ(estimated("doubling", ranks_on_hosts(1, 8), {}).messages, 8 * 3);
  EXPECT_EQ(estimated("ring", ranks_on_hosts(1, 4), {}, {.chunks = 5}).messages, 4 * 6 * 5);
  EXPECT_EQ(estimated("multi_ring", ranks_on_hosts(1, 4), {}, {.rings = 3, .chunks = 5}).messages,
            4 * 6 * 5 * 3);
}

// The sums hide behind the messages but for those of the last chunk.
TEST(Estimate, HidesTheShorterStageBehindTheLongerInChunks) {
  const Links links{.latency = 0, .add = 1e-9, .rank = 1e9};
  const double moving = 2 * 0.75 * 4e-3, adding = 0.75 * 4e-3;
  const Topology four = ranks_on_hosts(1, 4);
  EXPECT_DOUBLE_EQ(estimated("ring", four, links).seconds, moving + adding);
  EXPECT_DOUBLE_EQ(estimated("ring", four, links, {.chunks = 10}).seconds, moving + adding / 10);
}

TEST(Estimate, WaitsForEachWindowOfChunks) {
  const Links links{.latency = 1e-3, .rank = 1e30};
  const Topology two = ranks_on_hosts(1, 2);
  EXPECT_NEAR(estimated("ring", two, links, {.chunks = 8, .window = 8}).seconds, 2e-3, 1e-9);
  EXPECT_NEAR(estimated("ring", two, links, {.chunks = 8, .window = 4}).seconds, 4e-3, 1e-9);
  EXPECT_NEAR(estimated("ring", two, links, {.chunks = 9, .window = 4}).seconds, 6e-3, 1e-9);
}

TEST(Estimate, TakesTheDimensionsOfAGridOneAfterAnother) {
  const Topology topology = ranks_on_hosts(2, 4);
  const double inside = 2 * 0.75 * 4e-3;          // at 1 GB/s
  const double outside = 2 * 0.5 / 4 * 4e-3 * 8;  // a quarter is left; four ranks share 0.5 GB/s
  EXPECT_DOUBLE_EQ(estimated("grid_of_rings", topology, bytes_only, {.dims = {4, 2}}).seconds,
                   inside + outside);
  EXPECT_GT(estimated("grid_of_rings", topology, bytes_only, {.dims = {2, 4}}).seconds,
            inside + outside)
      << "more crosses the hosts";
}

TEST(Estimate, ReadsTheMemoryOfPeersTwice) {
  const Links links{.latency = 0, .memory = 1e9, .barrier = 1e-3};
  EXPECT_DOUBLE_EQ(estimated("shared", ranks_on_hosts(1, 4), links).seconds, 2 * 4e-3 + 2e-3);
  Topology nodes = ranks_on_hosts(1, 4);
  nodes.numa_node_of = {0, 0, 1, 1};
  Links remote = links;
  remote.remote_memory = 0.25e9;
  EXPECT_DOUBLE_EQ(estimated("shared", nodes, remote).seconds, 2 * 4e-3 * (0.5 + 0.5 * 4) + 2e-3)
      << "half of it on the other node";
  remote.barrier = 0;
  EXPECT_LT(estimated("shared_by_node", nodes, remote, {.chunks = 10}).seconds,
            estimated("shared", nodes, remote, {.chunks = 10}).seconds)
      << "it reads the other node's memory half as often";
}

}  // namespace
}  // namespace cnn::allreduce
