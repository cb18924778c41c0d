#include "allreduce/symmetry.h"

#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "allreduce/choose.h"
#include "allreduce/cost.h"

namespace cnn::allreduce {
namespace {

struct Case {
  const char* algorithm;
  int hosts, each;
  std::size_t elements;
  Options options;
};

double by_host_0(const Case& test_case, const Links& links) {
  const Topology topology = ranks_on_hosts(test_case.hosts, test_case.each);
  const Algorithm& row = find(test_case.algorithm);
  const std::optional<Symmetry> symmetry = symmetry_of(row, topology, test_case.options);
  EXPECT_TRUE(symmetry) << test_case.algorithm;
  std::vector<RankPlan> plans;
  for (int rank = 0; symmetry && rank < symmetry->representatives(); ++rank) {
    plans.push_back(make_plan(row, topology, rank, test_case.elements, test_case.options));
  }
  return symmetry ? simulate(plans, topology, links, *symmetry, 1) : 0;
}

TEST(Symmetry, GivesTheTimeOfAllRanks) {
  const Links links{.latency = 3e-6, .post = 2e-7, .add = 1e-11, .rank = 20e9, .host = 12e9};
  const std::vector<Case> cases{
      {"ring", 6, 1, 6'000, {}},
      {"ring", 4, 3, 12'000, {.chunks = 4, .window = 2}},
      {"multi_ring", 4, 3, 14'400, {.rings = 3, .chunks = 4, .window = 6}},
      {"direct", 5, 1, 10'000, {.chunks = 2, .window = 2}},
      {"direct", 3, 4, 24'000, {}},
      {"grid_of_direct", 12, 1, 24'000, {.dims = {3, 4}, .chunks = 4, .window = 2}},
      {"grid_of_direct", 6, 4, 36'000, {.dims = {4, 2, 3}, .chunks = 3, .window = 3}},
      {"grid_of_direct", 4, 2, 4'000, {.dims = {4, 2}}},  // hosts end inside a dimension
      {"grid_of_rings", 4, 4, 76'800, {.dims = {4, 2, 2}, .chunks = 16, .window = 3}},
      {"doubling", 8, 2, 1'600, {.chunks = 2, .window = 2}},
      {"halving", 16, 1, 25'600, {.chunks = 16, .window = 4}},
  };
  for (const Case& test_case : cases) {
    const Topology topology = ranks_on_hosts(test_case.hosts, test_case.each);
    const double all = simulate(
        plans_of_all(find(test_case.algorithm), topology, test_case.elements, test_case.options),
        topology, links);
    // A host's link serialises simultaneous messages, and the two simulations may order them
    // differently.
    const double slack = test_case.each == 1 ? 1e-6 : 0.04;
    EXPECT_NEAR(by_host_0(test_case, links) / all, 1, slack)
        << test_case.algorithm << " of " << test_case.hosts << " hosts of " << test_case.each;
  }
}

TEST(Symmetry, IsNotClaimedWhereRanksDiffer) {
  Topology topology = ranks_on_hosts(4, 2);
  EXPECT_TRUE(symmetry_of(find("ring"), topology, {}));
  EXPECT_FALSE(symmetry_of(find("tree"), topology, {}));
  EXPECT_FALSE(symmetry_of(find("halving"), ranks_on_hosts(6, 1), {}));
  EXPECT_FALSE(symmetry_of(find("grid_of_rings"), ranks_on_hosts(4, 3), {.dims = {2, 6}}));
  topology.link.assign(8, 1.0);
  topology.link[3] = 0.5;
  EXPECT_FALSE(symmetry_of(find("ring"), topology, {}));
  topology.link.clear();
  topology.host_of.back() = 4;
  EXPECT_FALSE(symmetry_of(find("ring"), topology, {}));
}

// Runs the whole choice, which would simulate millions of messages without symmetry.
TEST(Symmetry, LetsThousandsOfRanksBeSimulated) {
  for (const int hosts : {128, 512}) {
    const Topology topology = ranks_on_hosts(hosts, 8);
    const std::size_t elements = 2'000'003;
    const Candidate candidate = candidates(topology, {.elements = elements}, {}).front();
    const double least = bound(topology, elements * sizeof(float), {});
    EXPECT_GT(candidate.seconds, least);
    EXPECT_LT(candidate.seconds, 1.3 * least) << candidate.algorithm->name;
  }
}

}  // namespace
}  // namespace cnn::allreduce
