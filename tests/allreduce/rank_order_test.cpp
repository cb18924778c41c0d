#include "allreduce/rank_order.h"

#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "allreduce/choose.h"
#include "allreduce/cost.h"
#include "tests/allreduce/plans.h"

namespace cnn::allreduce {
namespace {

using tests::proved;

// Returns ranks dealt to hosts round-robin, as `mpirun --map-by node` does.
Topology dealt(int hosts, int each) {
  Topology topology;
  for (int rank = 0; rank < hosts * each; ++rank) {
    topology.host_of.push_back(rank % hosts);
  }
  return topology;
}

// Returns the elements of all messages between hosts.
std::size_t crossing_hosts(const std::vector<RankPlan>& plans, const Topology& topology) {
  std::size_t elements = 0;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    for (const Chunk& chunk : plans[rank].chunks) {
      for (const Action& action : chunk.actions) {
        const auto* const send = std::get_if<Send>(&action);
        if (send != nullptr &&
            topology.host_of[static_cast<std::size_t>(send->to)] != topology.host_of[rank]) {
          elements += send->range.size();
        }
      }
    }
  }
  return elements;
}

Options options_for(const Algorithm& row, int hosts, int each) {
  Options options{.rings = 2, .chunks = 3, .window = 4};
  if (row.grid) {
    options.dims = {each, hosts};
  }
  return options;
}

TEST(RankOrder, PutsTheRanksOfAHostSideBySide) {
  EXPECT_EQ(ranks_by_position(dealt(2, 2)), (std::vector{0, 2, 1, 3}));
  EXPECT_EQ(ranks_by_position({{4, 1, 4, 1, 1}}), (std::vector{0, 2, 1, 3, 4}));
  EXPECT_EQ(ranks_by_position(ranks_on_hosts(2, 2)), (std::vector{0, 1, 2, 3}));
  EXPECT_TRUE(hosts_are_contiguous(ranks_on_hosts(3, 2)));
  EXPECT_TRUE(hosts_are_contiguous({{2, 2, 0, 1}}));
  EXPECT_FALSE(hosts_are_contiguous(dealt(3, 2)));
  EXPECT_FALSE(hosts_are_contiguous({{0, 1, 0}}));
}

TEST(RankOrder, SendsNoMoreBetweenHostsHoweverRanksAreDealt) {
  for (const auto& [hosts, each] : std::vector<std::pair<int, int>>{{2, 2}, {2, 3}, {3, 4}}) {
    for (const Algorithm& row : catalog()) {
      if (row.peers_memory && !row.grid) {
        continue;  // a single host
      }
      SCOPED_TRACE(std::string(row.name) + " " + std::to_string(hosts) + " hosts");
      const Options options = options_for(row, hosts, each);
      const Topology spread = dealt(hosts, each), together = ranks_on_hosts(hosts, each);
      EXPECT_EQ(crossing_hosts(plans_of_all(row, spread, 1200, options), spread),
                crossing_hosts(plans_of_all(row, together, 1200, options), together));
      proved(std::string(row.name), spread, 1203, options);
    }
  }
}

TEST(RankOrder, IsProvedForHostsOfUnequalSize) {
  for (const Algorithm& row : catalog()) {
    if (!row.peers_memory && !row.grid) {
      SCOPED_TRACE(std::string(row.name));
      proved(std::string(row.name), {{1, 0, 1, 2, 1, 0, 2}, {1, 0.5, 1, 1, 1, 0.5, 1}}, 1003,
             {.rings = 3, .chunks = 2});
    }
  }
}

TEST(RankOrder, CostsNoTimeWhereSumsHaveNoOrder) {
  const Links gigabit{.latency = 5e-5, .rank = 4e9, .host = 0.119e9};
  const double bytes = 16 << 20U;
  const Requirements requirements{.elements = (16U << 20U) / sizeof(float)};
  for (const Topology& topology : {dealt(2, 2), dealt(3, 4)}) {
    EXPECT_LT(candidates(topology, requirements, gigabit).front().seconds,
              1.05 * bound(topology, bytes, gigabit));
  }
}

TEST(RankOrder, LeavesRanksInOrderWhereSumsHaveOne) {
  for (const Algorithm& row : catalog()) {
    for (const Order order : {Order::rank, Order::tree}) {
      if (row.ordered && !row.peers_memory) {
        Options options = options_for(row, 2, 2);
        options.order = order;
        SCOPED_TRACE(std::string(row.name));
        proved(std::string(row.name), dealt(2, 2), 101, options);
      }
    }
  }
}

// Ranks 0 and 2 share a host and rank 1 does not, so comparing only the first and last rank fails.
TEST(RankOrder, LooksAtAllRanksToFindOneHost) {
  const Requirements requirements{.elements = 100'000, .peers_memory = true};
  for (const Candidate& candidate : candidates({{0, 1, 0}}, requirements, {})) {
    EXPECT_NE(candidate.algorithm->name, "shared");
  }
  EXPECT_GT(candidates({{0, 1, 0}}, requirements, {}).size(),
            candidates(ranks_on_hosts(1, 3), requirements, {}).size());
}

}  // namespace
}  // namespace cnn::allreduce
