#include "allreduce/choose.h"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "allreduce/proof.h"

namespace cnn::allreduce {
namespace {

std::string best(const Topology& topology, const Wish& wish, const Links& links = {}) {
  return std::string(candidates(topology, wish, links).front().algorithm->name);
}

TEST(Choice, DependsOnTheSize) {
  const Topology sixteen = ranks_on_hosts(16, 1);
  const Links links{.post = 1e-6};
  EXPECT_EQ(best(sixteen, {.elements = 256}, links), "doubling");
  const std::vector<Candidate> large = candidates(sixteen, {.elements = 25'000'000}, links);
  const double least = bound(sixteen, 100e6, links);
  EXPECT_LT(large.front().seconds, 1.02 * least);
  EXPECT_GT(large.back().seconds, 2 * least);
}

TEST(Choice, TakesTheMemoryOfPeersWhereTheyHaveOneHost) {
  const Links links{.rank = 5e9, .memory = 10e9};
  EXPECT_EQ(best(ranks_on_hosts(1, 4), {.elements = 1'000'000, .peers_memory = true}, links),
            "shared");
  EXPECT_NE(best(ranks_on_hosts(2, 2), {.elements = 1'000'000, .peers_memory = true}, links),
            "shared");
}

TEST(Choice, HasNoMoreChunksThanRanksHaveChannels) {
  for (const std::size_t channels : {1, 20}) {
    for (const Candidate& candidate :
         candidates(ranks_on_hosts(2, 3), {.elements = 100'000, .channels = channels}, {})) {
      const RankPlan plan =
          make_plan(*candidate.algorithm, ranks_on_hosts(2, 3), 0, 100'000, candidate.options);
      EXPECT_LE(plan.chunks.size(), channels) << candidate.algorithm->name;
    }
  }
}

TEST(Choice, GivesSlowLinksLessToSum) {
  Topology topology = ranks_on_hosts(8, 1);
  topology.link.assign(8, 1.0);
  topology.link[2] = 0.4;
  EXPECT_EQ(best(topology, {.elements = 10'000'000}), "weighted");
}

TEST(Choice, KeepsOrderAndWire) {
  const Topology topology = ranks_on_hosts(3, 4);
  for (const Order order : {Order::rank, Order::tree}) {
    for (const Candidate& candidate :
         candidates(topology, {.elements = 5000, .order = order, .wire = Wire::bf16}, {})) {
      const auto plans = plans_of_all(*candidate.algorithm, topology, 5000, candidate.options);
      prove(plans, {5000, order, candidate.options.dims});
      EXPECT_EQ(plans[0].wire, Wire::bf16);
    }
  }
}

TEST(Choice, OfManyRanksIsAGrid) {
  const std::vector<Candidate> all =
      candidates(ranks_on_hosts(8, 4), {.elements = 50'000}, {.post = 1e-6});
  ASSERT_TRUE(all.front().algorithm->grid) << all.front().algorithm->name;
  EXPECT_EQ(all.front().options.dims.front(), 4);
}

}  // namespace
}  // namespace cnn::allreduce
