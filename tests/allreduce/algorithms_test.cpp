#include <algorithm>
#include <bit>
#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "allreduce/algorithm.h"
#include "tests/allreduce/plans.h"
#include "tests/support/error_of.h"

namespace cnn::allreduce {
namespace {

using tests::error_of;
using tests::factorisations;
using tests::proved;

const std::vector<std::string> flat{"ring",    "multi_ring", "direct",  "doubling",
                                    "halving", "tree",       "weighted"};

std::vector<std::size_t> lengths(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  return {0, 1, n - 1, n + 1, 1003};
}

// Returns a topology in which every third rank has a slower link.
Topology uneven(int ranks) {
  Topology topology = ranks_on_hosts(1, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    topology.link.push_back(rank % 3 == 1 ? 0.5 : 1);
  }
  return topology;
}

std::vector<int> primes(int from, int to) {
  std::vector<int> result;
  for (int n = from; n <= to; ++n) {
    bool prime = true;
    for (int d = 2; d * d <= n; ++d) {
      prime = prime && n % d != 0;
    }
    if (prime) {
      result.push_back(n);
    }
  }
  return result;
}

TEST(Algorithms, AreProvedForOneToSixtyFourRanks) {
  for (const std::string& name : flat) {
    for (int ranks = 1; ranks <= 64; ++ranks) {
      for (const std::size_t elements : lengths(ranks)) {
        SCOPED_TRACE(name + " " + std::to_string(ranks) + " " + std::to_string(elements));
        proved(name, uneven(ranks), elements, {.chunks = 1});
      }
      if (ranks <= 24) {
        proved(name, uneven(ranks), 1003, {.rings = 3, .chunks = 5, .window = 2});
      }
    }
  }
}

void prove_flat(const std::vector<std::string>& names, const std::vector<int>& ranks) {
  for (const std::string& name : names) {
    for (const int n : ranks) {
      SCOPED_TRACE(name + " " + std::to_string(n));
      proved(name, ranks_on_hosts(1, n), 1'000'003);
    }
  }
}

TEST(Algorithms, AreProvedForPrimeNumbersOfRanks) {
  prove_flat(flat, {67, 101});
  prove_flat({"doubling", "halving", "tree"}, {131, 251, 257});
}
TEST(SlowAlgorithms, AreProvedForPrimeNumbersOfRanks) { prove_flat(flat, primes(67, 257)); }

TEST(Algorithms, AreProvedForAThousandAndTwentyFourRanks) {
  prove_flat({"doubling", "halving", "tree"}, {1024});
  for (const std::vector<int>& dims : {std::vector<int>{4, 16, 16}, {4, 4, 4, 4, 4}}) {
    proved("grid_of_rings", ranks_on_hosts(256, 4), 1'000'003, {.dims = dims});
    proved("grid_of_direct", ranks_on_hosts(256, 4), 1'000'003,
           {.order = Order::tree, .dims = dims, .chunks = 2});
  }
}
TEST(SlowAlgorithms, AreProvedForAThousandAndTwentyFourRanks) {
  prove_flat({"ring", "direct"}, {1024});
}

TEST(Algorithms, AreProvedForAllGrids) {
  for (const std::string name : {"grid_of_rings", "grid_of_direct"}) {
    for (int ranks = 1; ranks <= 64; ++ranks) {
      for (const std::vector<int>& dims : factorisations(ranks)) {
        SCOPED_TRACE(name + " " + std::to_string(ranks) + " in " + std::to_string(dims.size()));
        proved(name, ranks_on_hosts(ranks, 1), 2 * static_cast<std::size_t>(ranks) + 1,
               {.dims = dims, .chunks = 2});
        proved(name, ranks_on_hosts(ranks, 1), 1, {.dims = dims});
      }
    }
  }
  proved("grid_of_rings", ranks_on_hosts(6, 4), 1'000'003,
         {.dims = {4, 3, 2}, .chunks = 7, .window = 3, .rotate = true});
}

TEST(Algorithms, KeepTheOrderOfSumsThatTheyPromise) {
  for (const Algorithm& row : catalog()) {
    for (const Order order : {Order::rank, Order::tree}) {
      for (int ranks = 1; ranks <= 24; ++ranks) {
        const bool power = std::has_single_bit(static_cast<unsigned>(ranks));
        if (!row.ordered && !(row.pairs && power && order == Order::tree)) {
          continue;
        }
        SCOPED_TRACE(std::string(row.name) + " " + std::to_string(ranks));
        for (const std::vector<int>& dims :
             row.grid ? factorisations(ranks) : std::vector<std::vector<int>>{{}}) {
          proved(std::string(row.name), ranks_on_hosts(1, ranks), 101,
                 {.order = order, .dims = dims, .chunks = 3});
        }
      }
    }
  }
}

TEST(Algorithms, LetOnlyTheOwnersOfAShuffleSum) {
  for (const int owners : {1, 2, 5}) {
    const auto traffic =
        proved("shuffle", ranks_on_hosts(1, 5), 1003, {.chunks = 3, .owners = owners});
    for (int rank = 0; rank < 5; ++rank) {
      EXPECT_EQ(traffic[static_cast<std::size_t>(rank)].elements_added > 0, rank < owners)
          << rank << " of " << owners;
    }
  }
  EXPECT_NE(error_of([] { plans_of_all(find("shuffle"), ranks_on_hosts(1, 2), 9, {.owners = 3}); }),
            "");
}

TEST(Algorithms, GiveTheSamePairwiseSumsForAllGridsOfPowersOfTwo) {
  for (const std::vector<int>& dims : factorisations(64)) {
    const auto plans = plans_of_all(find("grid_of_direct"), ranks_on_hosts(16, 4), 640,
                                    {.order = Order::tree, .dims = dims});
    prove(plans, {640, Order::tree, {64}});  // the proof takes the grid as one dimension
  }
  EXPECT_NE(error_of([] {
              const auto plans = plans_of_all(find("grid_of_direct"), ranks_on_hosts(1, 8), 640,
                                              {.order = Order::rank, .dims = {2, 4}});
              prove(plans, {640, Order::rank, {8}});
            }),
            "");
}

// Textbook formulas give the elements and messages that a rank sends for a buffer of n^2 elements.
TEST(Algorithms, SendWhatTheirFormulasSay) {
  for (const std::size_t n : {2, 4, 8, 16, 64}) {
    const auto most = [&](const std::string& name, const Options& options) {
      const auto traffic = proved(name, ranks_on_hosts(1, static_cast<int>(n)), n * n, options);
      Traffic result;
      for (const Traffic& of_rank : traffic) {
        result.messages = std::max(result.messages, of_rank.messages);
        result.elements_sent = std::max(result.elements_sent, of_rank.elements_sent);
        result.elements_added = std::max(result.elements_added, of_rank.elements_added);
      }
      return result;
    };
    const auto steps = static_cast<std::size_t>(std::countr_zero(n));
    for (const std::string name : {"ring", "direct"}) {
      EXPECT_EQ(most(name, {}).messages, 2 * (n - 1));
      EXPECT_EQ(most(name, {}).elements_sent, 2 * (n - 1) * n);
      EXPECT_EQ(most(name, {}).elements_added, (n - 1) * n);
    }
    EXPECT_EQ(most("doubling", {}).messages, steps);
    EXPECT_EQ(most("doubling", {}).elements_sent, steps * n * n);
    EXPECT_EQ(most("halving", {}).messages, 2 * steps);
    EXPECT_EQ(most("halving", {}).elements_sent, 2 * (n - 1) * n);
    // In each of the two trees a rank sends at most three messages: to two children and to a
    // parent.
    EXPECT_LE(most("tree", {}).messages, 6U);
    if (n >= 4) {
      const int half = static_cast<int>(n) / 2;
      EXPECT_EQ(most("grid_of_rings", {.dims = {2, half}}).messages, 2 * (1 + n / 2 - 1));
      EXPECT_EQ(most("grid_of_direct", {.dims = {half, 2}}).elements_sent, 2 * (n - 1) * n);
    }
  }
}

// Hosts have four ranks each. Only the dimensions between hosts send messages.
TEST(Algorithms, SumInMemoryWhereDimensionsLieWithinHosts) {
  for (const auto& [dims, sent] : std::vector<std::pair<std::vector<int>, std::size_t>>{
           {{4, 3}, 2 * 2 * 100}, {{2, 2, 3}, 2 * 2 * 100}, {{2, 6}, 2 * 5 * 100}}) {
    for (const std::string name : {"shared_rings", "shared_direct"}) {
      for (const Topology& topology :
           {ranks_on_hosts(3, 4), Topology{{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}}}) {
        SCOPED_TRACE(name + " " + std::to_string(dims.size()));
        for (const Traffic& traffic :
             proved(name, topology, 1200, {.dims = dims, .chunks = 2, .window = 2})) {
          EXPECT_EQ(traffic.elements_sent, sent);
        }
        proved(name, topology, 7, {.dims = dims, .chunks = 3, .window = 1});
      }
    }
  }
  for (const Order order : {Order::rank, Order::tree}) {
    proved("shared_direct", ranks_on_hosts(3, 4), 1201, {.order = order, .dims = {2, 2, 3}});
  }
}

TEST(Algorithms, GiveSlowLinksLessToSum) {
  Topology topology = ranks_on_hosts(16, 1);
  topology.link.assign(16, 1.0);
  topology.link[3] = 0.5;
  const auto traffic = proved("weighted", topology, 1'000'000);
  // The slow rank sends one buffer; the others send 2 (n - 1) / (sum of links) = 1.94 buffers.
  EXPECT_NEAR(static_cast<double>(traffic[3].elements_sent), 1e6, 2e4);
  EXPECT_NEAR(static_cast<double>(traffic[4].elements_sent), 2e6, 8e4);
}

TEST(Algorithms, NeedScratchForTheirWindowOnly) {
  const auto scratch = [](int chunks, int window) {
    return make_plan(find("direct"), ranks_on_hosts(1, 4), 0, 64'000,
                     {.chunks = chunks, .window = window})
        .scratch;
  };
  EXPECT_EQ(scratch(1, 8), 48'000U);
  EXPECT_EQ(scratch(10, 2), 9'600U);
  EXPECT_EQ(scratch(10, 20), 48'000U);
}

}  // namespace
}  // namespace cnn::allreduce
