#include "allreduce/cost.h"

#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/choose.h"

namespace cnn::allreduce {
namespace {

constexpr std::size_t mb = 1'000'000 / sizeof(float);  // elements of 1 MB

double seconds(const std::string& name, const Topology& topology, std::size_t elements,
               const Options& options, const Links& links = {}) {
  return simulate(plans_of_all(find(name), topology, elements, options), topology, links);
}

// Times what the bound takes.
double distance(const std::string& name, const Topology& topology, std::size_t elements,
                const Options& options, const Links& links = {}) {
  const double bytes = static_cast<double>(elements * sizeof(float));
  return seconds(name, topology, elements, options, links) / bound(topology, bytes, links);
}

TEST(Cost, MatchesTheFormulasOfAlgorithms) {
  const Links links{.latency = 5e-6, .rank = 1e9, .host = 1e9};
  const double a = links.latency, s = 64e6 / links.host;  // of 16 M elements
  for (const int n : {2, 4, 16}) {
    const Topology topology = ranks_on_hosts(n, 1);
    const auto time = [&](const std::string& name) {
      return seconds(name, topology, 16'000'000, {}, links);
    };
    const double share = 2.0 * (n - 1) / n * s, steps = std::log2(n);
    EXPECT_NEAR(time("ring") / (share + 2 * (n - 1) * a), 1, 1e-3);
    EXPECT_NEAR(time("direct") / (share + 2 * a), 1, 1e-3);
    EXPECT_NEAR(time("doubling") / (steps * (s + a)), 1, 1e-3);
    EXPECT_NEAR(time("halving") / (share + 2 * steps * a), 1, 1e-3);
    EXPECT_NEAR(bound(topology, 64e6, links) / share, 1, 1e-3);
  }
}

TEST(Cost, CountsAddingAndPosting) {
  const Links links{.latency = 0, .post = 1e-3, .add = 1e-9, .host = 1e9};
  // Each posts two messages out and two in, and adds half of the buffer.
  EXPECT_NEAR(seconds("direct", ranks_on_hosts(2, 1), 1'000'000, {}, links), 4e-3 + 4e-3 + 2e-3,
              1e-4);
  const Links memory{.latency = 1e-6, .memory = 1e9};
  // Two barriers; two buffers read and two written by two ranks.
  EXPECT_NEAR(seconds("shared", ranks_on_hosts(1, 2), 1'000'000, {}, memory), 8e-3 + 2e-6, 1e-6);
}

TEST(Cost, AddsTheDimensionsOfGrids) {
  const Links links{.latency = 0, .rank = 20e9, .host = 12.5e9};
  const double inside = 2 * 3.0 / 4 * 102.4e6 / 20e9, outside = 2 * 63.0 / 64 * 102.4e6 / 12.5e9;
  const Topology topology = ranks_on_hosts(64, 4);
  EXPECT_NEAR(seconds("grid_of_rings", topology, 1024 * mb / 10, {.dims = {4, 64}}, links) /
                  (inside + outside),
              1, 0.01);
}

TEST(Cost, HidesSmallerDimensionsBehindChunks) {
  const Topology topology = ranks_on_hosts(16, 4);
  const auto far = [&](int chunks) {
    return distance("grid_of_rings", topology, 1024 * mb / 10,
                    {.dims = {4, 16}, .chunks = chunks, .window = 6});
  };
  EXPECT_GT(far(1), 1.4);
  EXPECT_LT(far(32), 1.05);
}

// 102.4 MB and 1 MB, cards of 12.5 GB/s, 1 us.
TEST(Cost, StaysNearTheBoundForManyRanks) {
  EXPECT_LT(distance("grid_of_rings", ranks_on_hosts(64, 4), 1024 * mb / 10,
                     {.dims = {4, 8, 8}, .chunks = 32, .window = 3}),
            1.05);
  EXPECT_LT(distance("grid_of_direct", ranks_on_hosts(64, 4), 1024 * 1024 / 4,
                     {.dims = {4, 4, 4, 4}, .chunks = 2}, {.post = 1e-6}),
            1.5);
}
TEST(SlowCost, StaysNearTheBoundForAThousandRanks) {
  EXPECT_LT(distance("grid_of_rings", ranks_on_hosts(256, 4), 1024 * mb / 10,
                     {.dims = {4, 16, 16}, .chunks = 32, .window = 6}),
            1.08);
}

TEST(Cost, IsSmallIfASlowLinkSumsLess) {
  Topology topology = ranks_on_hosts(16, 1);
  topology.link.assign(16, 1.0);
  topology.link[5] = 0.5;
  EXPECT_GT(distance("ring", topology, 336 * mb / 10, {}), 1.8);
  EXPECT_LT(distance("weighted", topology, 336 * mb / 10, {.chunks = 16, .window = 3}), 1.15);
  EXPECT_LT(distance("weighted", topology, 336 * mb / 10, {.chunks = 32, .window = 3}), 1.08);
}

TEST(Cost, SaysWhenRanksWaitForever) {
  auto plans = plans_of_all(find("ring"), ranks_on_hosts(1, 3), 30, {});
  plans[1].chunks[0].actions.pop_back();
  plans[1].chunks[0].actions.pop_back();
  EXPECT_ANY_THROW(simulate(plans, ranks_on_hosts(1, 3), {}));
}

// Also where links between hosts are so fast that adding counts.
TEST(Cost, IsNoLessThanTheBoundWhereHostsSumInMemory) {
  for (const double host : {1e8, 1e11}) {
    const Links links{.add = 1e-10, .rank = 4e9, .host = host, .memory = 20e9, .barrier = 1e-7};
    for (const Topology& topology : {ranks_on_hosts(2, 4), ranks_on_hosts(1, 4)}) {
      for (const Candidate& candidate :
           candidates(topology, {.elements = 1 << 20U, .peers_memory = true}, links)) {
        EXPECT_GE(candidate.seconds, 0.999 * bound(topology, 4 << 20U, links, true))
            << candidate.algorithm->name;
      }
    }
  }
}

}  // namespace
}  // namespace cnn::allreduce
