#include "allreduce/choose.h"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "allreduce/estimate.h"
#include "runtime/error.h"
#include "tests/support/allreduce/proof.h"
#include "tests/support/error_of.h"

namespace cnn::allreduce {
namespace {

std::string best(const Topology& topology, const Requirements& requirements,
                 const Links& links = {}) {
  return std::string(candidates(topology, requirements, links).front().algorithm->name);
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
  const Requirements large{.elements = 4'000'000, .peers_memory = true};
  const Links gigabit{.latency = 2e-5, .rank = 2e9, .host = 0.12e9, .memory = 20e9};
  for (const Topology& topology : {ranks_on_hosts(2, 4), Topology{{0, 1, 0, 1, 0, 1, 0, 1}}}) {
    EXPECT_TRUE(candidates(topology, large, gigabit).front().algorithm->peers_memory);
  }
  EXPECT_FALSE(candidates(ranks_on_hosts(8, 1), large, gigabit).front().algorithm->peers_memory);
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

// With a fixed order of sums, the dimensions decide the bits, so they must not depend on the links.
TEST(Choice, HasTheSameBitsOnAllLinksWhereSumsHaveAnOrder) {
  for (const Topology& topology :
       {ranks_on_hosts(3, 4), ranks_on_hosts(1, 6), ranks_on_hosts(12, 1), ranks_on_hosts(6, 2)}) {
    std::vector<std::vector<int>> dims;
    for (const double latency : {1e-7, 1e-4}) {
      for (const double host : {1e7, 1e10}) {
        for (const std::size_t elements : {64U, 100'000U}) {
          for (const Candidate& candidate : candidates(
                   topology, {.elements = elements, .order = Order::rank, .peers_memory = true},
                   {.latency = latency, .host = host})) {
            dims.push_back(candidate.options.dims);
          }
        }
      }
    }
    EXPECT_EQ(dims, std::vector<std::vector<int>>(dims.size(), dims.front()));
  }
}

TEST(Choice, AllowsAnyTreeWhoseDimensionsArePowersOfTwo) {
  const Requirements requirements{.elements = 100'000, .order = Order::tree};
  bool flat = false, grid = false;
  for (const Candidate& candidate : candidates(ranks_on_hosts(4, 2), requirements, {})) {
    (candidate.options.dims.empty() ? flat : grid) = true;
  }
  EXPECT_TRUE(flat && grid);
}

// A 16-bit wire rounds partial sums between dimensions, so that a tree has the bits of its grid.
TEST(Choice, AllowsOneGridOfATreeWhoseMessagesAreNarrow) {
  for (const bool peers_memory : {false, true}) {
    for (const Candidate& candidate : candidates(ranks_on_hosts(4, 2),
                                                 {.elements = 100'000,
                                                 .order = Order::tree,
                                                 .wire = Wire::bf16,
                                                 .peers_memory = peers_memory},
                                                 {})) {
      EXPECT_EQ(candidate.options.dims, (std::vector{2, 4})) << candidate.algorithm->name;
    }
  }
}

TEST(Choice, CutsIntoThePiecesThatAreAskedFor) {
  for (const Candidate& candidate : candidates(
           ranks_on_hosts(1, 2), {.elements = 1000, .peers_memory = true, .pieces = 5}, {})) {
    const RankPlan plan =
        make_plan(*candidate.algorithm, ranks_on_hosts(1, 2), 0, 1000, candidate.options);
    EXPECT_EQ(plan.chunks.size() % 5, 0U) << candidate.algorithm->name;
  }
  EXPECT_THROW(candidates(ranks_on_hosts(1, 2), {.elements = 1000, .pieces = 65}, {}), Error);
}

// Every remaining candidate must have the requested shape.
TEST(Choice, KeepsToAShape) {
  const Topology topology = ranks_on_hosts(2, 4);
  const auto all = [&](const Shape& shape, Order order = Order::fast) {
    return candidates(topology, {.elements = 1 << 20U, .order = order, .shape = shape}, {});
  };
  for (const Candidate& candidate : all({.dims = {2, 4}})) {
    EXPECT_TRUE(candidate.algorithm->grid);
    EXPECT_EQ(candidate.options.dims, (std::vector{2, 4}));
  }
  for (const Candidate& candidate : all({.dims = {8}})) {
    EXPECT_FALSE(candidate.algorithm->grid);
  }
  for (const Candidate& candidate : all({.rings = 3})) {
    EXPECT_EQ(candidate.algorithm->name, "multi_ring");
    EXPECT_EQ(candidate.options.rings, 3);
  }
  for (const Candidate& candidate : all({.rings = 1})) {
    EXPECT_NE(candidate.algorithm->name, "multi_ring");
  }
  for (const Candidate& candidate : all({.chunk_bytes = 1 << 18U, .window = 3})) {
    EXPECT_EQ(candidate.options.chunks, 16);
    EXPECT_EQ(candidate.options.window % 3, 0);
  }
  for (const Candidate& candidate : all({.dims = {4, 2}}, Order::rank)) {
    EXPECT_EQ(candidate.options.dims, (std::vector{4, 2}));
  }
  EXPECT_NE(tests::error_of([&] { all({.chunk_bytes = 1}); }).find("at most 64 chunks"),
            std::string::npos);
  EXPECT_NE(tests::error_of([&] {
              all({.dims = {3, 2}});
            }).find("the dimensions"),
            std::string::npos);
}

TEST(Choice, FollowsRulesBySize) {
  Settings settings{.topology = ranks_on_hosts(1, 4)};
  settings.rules = {{.most = 100, .algorithm = &find("doubling")},
                    {.algorithm = &find("shuffle"), .options = {.owners = 2}}};
  EXPECT_EQ(candidates_for(settings, 100).size(), 1U);
  EXPECT_EQ(candidates_for(settings, 100).front().algorithm->name, "doubling");
  const Candidate large = candidates_for(settings, 101).front();
  EXPECT_EQ(large.algorithm->name, "shuffle");
  EXPECT_EQ(large.options.owners, 2);
  EXPECT_GT(large.seconds, 0);
  settings.rules.back().options.owners = 5;
  EXPECT_THROW(candidates_for(settings, 101), Error);
  settings.rules = {{.algorithm = &find("ring")}};
  settings.order = Order::rank;
  EXPECT_THROW(candidates_for(settings, 101), Error);
}

// Estimates must be close enough that the fastest candidates for many ranks are among those that
// the choice simulates.
TEST(Choice, HasEstimatesNearTheSimulation) {
  const Links links{.latency = 2e-6, .post = 3e-7, .add = 1e-11};
  for (const Topology& topology : {ranks_on_hosts(8, 1), ranks_on_hosts(4, 4)}) {
    for (const std::size_t elements : {1000U, 1'000'000U}) {
      for (const Candidate& candidate :
           candidates(topology, {.elements = elements, .peers_memory = true}, links)) {
        const double rough =
            estimate(*candidate.algorithm, candidate.options, topology, elements, links).seconds;
        const double slack = candidate.algorithm->name == "tree" ? 2 : 1;
        EXPECT_LT(rough / candidate.seconds, 1.7 * slack)
            << candidate.algorithm->name << " " << elements;
        EXPECT_GT(rough / candidate.seconds, 0.4 / slack)
            << candidate.algorithm->name << " " << elements;
      }
    }
  }
}

TEST(Choice, TakesAGridForManyRanks) {
  const std::vector<Candidate> all =
      candidates(ranks_on_hosts(8, 4), {.elements = 50'000}, {.post = 1e-6});
  ASSERT_TRUE(all.front().algorithm->grid) << all.front().algorithm->name;
  EXPECT_EQ(all.front().options.dims.front(), 4);
}

}  // namespace
}  // namespace cnn::allreduce
