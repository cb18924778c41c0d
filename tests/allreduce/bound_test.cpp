#include <gtest/gtest.h>

#include "allreduce/cost.h"

namespace cnn::allreduce {
namespace {

constexpr double seconds_per_buffer = 2;
constexpr double buffer = 40e9;
const Links links{
    .latency = 1e-6, .rank = buffer / seconds_per_buffer, .host = 10e9, .memory = 80e9};

// Each of four links moves 2 * 3 / 4 buffers.
TEST(CostBound, CountsTwoBuffersLessTheOwnShareOverEqualLinks) {
  EXPECT_DOUBLE_EQ(bound(ranks_on_hosts(1, 4), buffer, links), 1.5 * seconds_per_buffer);
}

TEST(CostBound, CountsAWholeBufferOverTheSlowestLink) {
  Topology topology = ranks_on_hosts(1, 4);
  topology.link = {1, 1, 1, 0.25};
  EXPECT_DOUBLE_EQ(bound(topology, buffer, links), seconds_per_buffer / 0.25);
}

TEST(CostBound, CountsTheLinksBetweenHosts) {
  // Two hosts: each sends one buffer over 10e9 bytes per second.
  EXPECT_DOUBLE_EQ(bound(ranks_on_hosts(2, 2), buffer, links), buffer / 10e9);
}

TEST(CostBound, CountsReadingAndWritingWhereRanksShareMemory) {
  EXPECT_DOUBLE_EQ(bound(ranks_on_hosts(1, 4), buffer, links, /*peers_memory=*/true),
                   2 * buffer / 80e9);
}

TEST(CostBound, IsTheLatencyOfOneMessageForNoBytes) {
  EXPECT_DOUBLE_EQ(bound(ranks_on_hosts(2, 2), 0, links), 1e-6);
}

TEST(CostBound, CountsTheAdditionsOfTheSlicesOfARank) {
  Links slow = links;
  slow.add = 1e-9;
  EXPECT_DOUBLE_EQ(bound(ranks_on_hosts(1, 4), buffer, slow), 0.75 * buffer * 1e-9);
}

TEST(CostBound, IsZeroForOneRank) { EXPECT_EQ(bound(ranks_on_hosts(1, 1), buffer, links), 0); }

}  // namespace
}  // namespace cnn::allreduce
