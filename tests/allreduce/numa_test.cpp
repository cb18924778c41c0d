// Ranks of one host, or of several, whose processors have NUMA nodes. This needs no such machine: a
// topology says which node each rank has.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "allreduce/calibrate.h"
#include "allreduce/choose.h"
#include "allreduce/cost.h"
#include "allreduce/estimate.h"
#include "allreduce/rank_order.h"
#include "allreduce/symmetry.h"
#include "tests/allreduce/plans.h"
#include "tests/allreduce/ranks.h"
#include "tests/support/error_of.h"

namespace cnn::allreduce {
namespace {

using tests::proved;

// One host, whose ranks have these nodes.
Topology on_nodes(std::vector<int> nodes) {
  Topology topology = ranks_on_hosts(1, static_cast<int>(nodes.size()));
  topology.numa_node_of = std::move(nodes);
  return topology;
}

Topology equal_nodes(int hosts, int nodes, int each) {
  Topology topology = ranks_on_hosts(hosts, nodes * each);
  for (int rank = 0; rank < topology.ranks(); ++rank) {
    topology.numa_node_of.push_back(rank / each % nodes);
  }
  return topology;
}

// Two and four nodes, equal and unequal ones, of which ranks stand together or are dealt in turn.
const std::vector<Topology>& shapes() {
  static const std::vector<Topology> all{on_nodes({0, 0, 1, 1}),
                                         on_nodes({0, 0, 0, 0, 1, 1, 1, 1}),
                                         on_nodes({0, 0, 1, 1, 2, 2, 3, 3}),
                                         on_nodes({0, 0, 0, 1}),
                                         on_nodes({0, 1, 1, 1, 1}),
                                         on_nodes({3, 3, 3, 0, 0, 0, 0, 0, 7}),
                                         on_nodes({0, 1, 0, 1, 0, 1, 0, 1}),
                                         on_nodes({0, 1, 2, 3, 0, 1, 2, 3, 0}),
                                         on_nodes({1, 0, 0, 1, 2, 0, 1}),
                                         on_nodes({0, 1, 2, 3, 4, 5, 6})};
  return all;
}

std::string text_of(const Topology& topology) {
  std::string text = "nodes";
  for (const int node : topology.numa_node_of) {
    text += " " + std::to_string(node);
  }
  return text;
}

TEST(NumaPlacement, PutsTheRanksOfANodeSideBySideInTheirHost) {
  EXPECT_EQ(ranks_by_position(on_nodes({0, 1, 0, 1})), (std::vector{0, 2, 1, 3}));
  EXPECT_EQ(ranks_by_position(on_nodes({1, 0, 0, 1, 2, 0, 1})), (std::vector{0, 3, 6, 1, 2, 5, 4}));
  // Both hosts number their nodes from 0 on.
  const Topology two_hosts{{0, 1, 0, 1, 0, 1, 0, 1}, {}, {0, 0, 1, 0, 0, 1, 1, 1}};
  EXPECT_EQ(ranks_by_position(two_hosts), (std::vector{0, 4, 2, 6, 1, 3, 5, 7}));
  EXPECT_EQ(ranks_by_node(two_hosts),
            (std::vector<std::vector<int>>{{0, 4}, {2, 6}, {1, 3}, {5, 7}}));
  EXPECT_EQ(ranks_of_each_node(two_hosts), 2);
  EXPECT_FALSE(ranks_of_each_node(on_nodes({0, 0, 0, 1})));
  EXPECT_FALSE(ranks_of_each_node(ranks_on_hosts(2, 4)));
  EXPECT_TRUE(nodes_are_contiguous(on_nodes({5, 5, 0, 0})));
  EXPECT_FALSE(nodes_are_contiguous(on_nodes({0, 1, 0, 1})));
  EXPECT_TRUE(hosts_are_contiguous(on_nodes({0, 1, 0, 1})));
}

TEST(NumaAlgorithms, AreProvedForAllShapesOfNodes) {
  for (const Topology& topology : shapes()) {
    SCOPED_TRACE(text_of(topology));
    for (const Algorithm& row : catalog()) {
      if (row.grid) {
        continue;
      }
      SCOPED_TRACE(std::string(row.name));
      for (const std::size_t elements : {0, 1, 5, 1003}) {
        for (const int window : {1, 4}) {
          proved(std::string(row.name), topology, elements, {.chunks = 3, .window = window});
        }
      }
    }
  }
}

TEST(NumaAlgorithms, AreProvedForGridsOverAllShapesOfNodes) {
  for (const Topology& topology :
       {equal_nodes(1, 2, 4), equal_nodes(1, 4, 2), equal_nodes(3, 2, 2), equal_nodes(2, 4, 3),
        on_nodes({0, 1, 0, 1, 0, 1, 0, 1}),
        Topology{{0, 1, 0, 1, 0, 1, 0, 1}, {}, {0, 0, 1, 0, 0, 1, 1, 1}}}) {
    const int each = *ranks_of_each_node(topology);
    const int hosts = topology.host_of.back() + 1;
    for (const std::string name : {"shared_rings", "shared_direct"}) {
      SCOPED_TRACE(name + " " + text_of(topology));
      const Options options{.dims = {each, topology.ranks() / hosts / each, hosts}, .chunks = 2};
      proved(name, topology, 1201, options);
      proved(name, topology, 7, options);
    }
    for (const Order order : {Order::rank, Order::tree}) {
      if (hosts_are_contiguous(topology)) {
        proved("shared_direct", topology, 1201,
               {.order = order, .dims = {each, topology.ranks() / each}});
      }
    }
  }
}

// The sums of nodes one after another are the sums of ranks one after another.
TEST(NumaAlgorithms, AddInTheOrderOfPositionsWithinAHost) {
  for (const Topology& topology : shapes()) {
    SCOPED_TRACE(text_of(topology));
    const Topology placed = by_position(topology, ranks_by_position(topology));
    for (const std::string name : {"shared", "shared_by_node"}) {
      const auto plans = plans_of_all(find(name), placed, 1003, {.chunks = 3});
      prove(plans, {.elements = 1003, .order = Order::rank, .dims = {}});
    }
  }
}

TEST(NumaAlgorithms, KeepAnOrderByRankWhereNodesAreNumberedOneAfterAnother) {
  for (const Topology& topology : shapes()) {
    SCOPED_TRACE(text_of(topology));
    const auto prove_order = [&] {
      proved("shared_by_node", topology, 1003, {.order = Order::rank, .chunks = 2});
    };
    const std::string error = tests::error_of(prove_order);
    EXPECT_EQ(error.empty(), nodes_are_contiguous(topology)) << error;
    EXPECT_NE(tests::error_of([&] {
                make_plan(find("shared_by_node"), topology, 0, 10, {.order = Order::tree});
              }),
              "");
  }
}

std::vector<std::uint32_t> bits_of_sum(const Topology& topology, const tests::Job& job) {
  std::vector<std::vector<float>> results(topology.host_of.size());
  const std::vector<std::string> errors = tests::as_threads(
      topology.ranks(), {.segment_bytes = std::size_t{1} << 22U}, [&](Transport& transport) {
        results[static_cast<std::size_t>(transport.rank())] =
            tests::reduce(transport, topology, job);
      });
  EXPECT_EQ(errors, std::vector<std::string>(errors.size()));
  std::vector<std::uint32_t> bits;
  for (const std::vector<float>& result : results) {
    EXPECT_EQ(result, results.front());
  }
  for (const float value : results.front()) {
    bits.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

TEST(NumaAlgorithms, GiveTheBitsOfOneNodeHoweverTheyAreCut) {
  constexpr std::size_t elements = 4099;
  for (const Topology& topology : shapes()) {
    SCOPED_TRACE(text_of(topology));
    const auto wanted =
        bits_of_sum(topology, {.algorithm = "shared", .elements = elements, .factor = 0.125F});
    for (const int chunks : {1, 2, 16}) {
      EXPECT_EQ(bits_of_sum(topology, {.algorithm = "shared_by_node",
                                       .elements = elements,
                                       .options = {.chunks = chunks, .window = 3},
                                       .pieces = 3,
                                       .factor = 0.125F,
                                       .times = 2}),
                wanted);
    }
  }
  // Where nodes are numbered one after another these are the bits of ranks without nodes, too.
  EXPECT_EQ(bits_of_sum(on_nodes({0, 0, 1, 1}), {.algorithm = "shared", .elements = elements}),
            bits_of_sum(ranks_on_hosts(1, 4), {.algorithm = "shared", .elements = elements}));
}

const Links numa_links{
    .latency = 1e-6, .rank = 3e9, .memory = 10e9, .remote_memory = 3e9, .barrier = 1e-6};

TEST(NumaCost, CountsTheReadsAndWritesInEachNode) {
  const std::size_t elements = 8'000'000;
  const double bytes = 32e6, barrier = 1e-6;
  const Topology two = equal_nodes(1, 2, 4);
  const auto seconds = [&](const std::string& name, const Options& options) {
    return simulate(plans_of_all(find(name), two, elements, options), two, numa_links);
  };
  // Each rank reads and writes an eighth of 4 buffers of its node and of 4 of the other.
  EXPECT_NEAR(seconds("shared", {}), bytes * (1 / 10e9 + 1 / 3e9) + 2 * barrier, 1e-7);
  // A quarter: 4 buffers are read and one is written; then 4 and one of the other node are read
  // and 4 written; then one of the other node is read and 4 are written.
  EXPECT_NEAR(seconds("shared_by_node", {}),
              bytes / 4 * (5 / 10e9 + 8 / 10e9 + 1 / 3e9 + 4 / 10e9 + 1 / 3e9) + 4 * barrier, 1e-7);
  EXPECT_LT(seconds("shared_by_node", {.chunks = 32, .window = 6}), 0.8 * seconds("shared", {}));
}

TEST(NumaCost, HasEstimatesNearTheSimulation) {
  for (const Topology& topology : {equal_nodes(1, 2, 4), equal_nodes(1, 4, 4)}) {
    for (const std::string name : {"shared", "shared_by_node"}) {
      for (const int chunks : {1, 16}) {
        const Options options{.chunks = chunks, .window = 6};
        const double simulated =
            simulate(plans_of_all(find(name), topology, 1 << 22U, options), topology, numa_links);
        const double rough = estimate(find(name), options, topology, 1 << 22U, numa_links).seconds;
        EXPECT_NEAR(rough / simulated, 1, 0.35) << name << " in " << chunks;
      }
    }
  }
}

TEST(NumaCost, IsThatOfTheFirstOfEqualHosts) {
  const Topology hosts = equal_nodes(4, 2, 2);
  const Options options{.dims = {2, 2, 4}};
  EXPECT_TRUE(symmetry_of(find("grid_of_direct"), hosts, options));
  Topology other = hosts;
  other.numa_node_of.back() = 0;
  EXPECT_FALSE(symmetry_of(find("grid_of_direct"), other, options));
}

Candidate best(const Topology& topology, const Links& links, Order order = Order::fast) {
  return candidates(topology, {.elements = 4'000'000, .order = order, .peers_memory = true}, links)
      .front();
}

TEST(NumaChoice, SumsByNodeWhereOtherNodesAreSlower) {
  Links even = numa_links;
  even.remote_memory = even.memory;
  for (const Topology& topology : {equal_nodes(1, 2, 4), on_nodes({0, 1, 0, 1, 0, 1, 0, 1}),
                                   equal_nodes(1, 4, 4), on_nodes({0, 0, 0, 0, 0, 1, 1, 1})}) {
    SCOPED_TRACE(text_of(topology));
    EXPECT_EQ(best(topology, numa_links).algorithm->name, "shared_by_node");
    EXPECT_EQ(best(topology, even).algorithm->name, "shared");
    Topology unknown = topology;
    unknown.numa_node_of.clear();
    EXPECT_EQ(best(unknown, numa_links).algorithm->name, "shared");
  }
  EXPECT_EQ(best(equal_nodes(1, 2, 4), numa_links, Order::rank).algorithm->name, "shared_by_node");
  EXPECT_EQ(best(on_nodes({0, 1, 0, 1}), numa_links, Order::rank).algorithm->name, "shared");
}

TEST(NumaChoice, SumsByNodeOnEachOfSeveralHosts) {
  const Candidate candidate = best(equal_nodes(4, 2, 4), {.latency = 1e-6,
                                                          .rank = 3e9,
                                                          .host = 12e9,
                                                          .memory = 10e9,
                                                          .remote_memory = 2e9,
                                                          .barrier = 1e-6});
  ASSERT_TRUE(candidate.algorithm->peers_memory) << candidate.algorithm->name;
  EXPECT_EQ(candidate.options.dims.front(), 4);
  EXPECT_EQ(candidate.options.dims[1], 2);
}

// For every bucket, so that the bits of a run do not depend on what it measured.
TEST(NumaChoice, AddsInOneOrderOnOneHostWhateverIsMeasured) {
  for (const Topology& topology : shapes()) {
    const Topology placed = by_position(topology, ranks_by_position(topology));
    for (const Candidate& candidate :
         candidates(placed, {.elements = 1003, .peers_memory = true}, numa_links)) {
      SCOPED_TRACE(std::string(candidate.algorithm->name));
      prove(plans_of_all(*candidate.algorithm, placed, 1003, candidate.options),
            {.elements = 1003, .order = Order::rank, .dims = {}});
    }
  }
}

// 64 MB of each rank, by how fast memory of another node is beside memory of the same.
TEST(NumaChoice, IsNeverSlowerThanOneSumOfAll) {
  for (const auto& [nodes, each] : std::vector<std::pair<int, int>>{{2, 4}, {2, 2}, {4, 4}}) {
    const Topology topology = equal_nodes(1, nodes, each);
    for (const double share : {1.0, 0.5, 0.33, 0.25}) {
      Links links = numa_links;
      links.remote_memory = share * links.memory;
      const Requirements requirements{.elements = 16'000'000, .peers_memory = true};
      const Candidate candidate = candidates(topology, requirements, links).front();
      const double before = simulate(
          plans_of_all(find("shared"), topology, requirements.elements, {}), topology, links);
      EXPECT_LE(candidate.seconds, before * (1 + 1e-9));
      if (each == 4 && share < 0.4) {
        EXPECT_LT(candidate.seconds, 0.8 * before);
      }
      std::cout << nodes << " nodes x " << each << " ranks, other nodes at " << share << ": "
                << 1e3 * before << " ms in one sum, " << 1e3 * candidate.seconds << " ms by "
                << candidate.algorithm->name << " in " << candidate.options.chunks << " chunks\n";
    }
  }
}

TEST(NumaCalibration, MeasuresTheMemoryOfOtherNodes) {
  constexpr CalibrationBudget quick{.seconds = 0.01, .bytes = 1 << 18U, .memory_bytes = 1 << 18U};
  for (const Topology& topology : {on_nodes({0, 1, 0, 1}), ranks_on_hosts(1, 4)}) {
    std::vector<LinkSpeeds> found(4);
    const auto errors =
        tests::as_threads(4, {.segment_bytes = std::size_t{1} << 22U}, [&](Transport& transport) {
          found[static_cast<std::size_t>(transport.rank())] =
              measure_links(transport, *tests::usable_loops().back(), topology, {}, quick);
        });
    EXPECT_EQ(errors, std::vector<std::string>(4));
    for (const LinkSpeeds& speeds : found) {
      ASSERT_EQ(speeds.links.remote_memory.has_value(), !topology.numa_node_of.empty());
      EXPECT_EQ(speeds.links.remote_memory, found.front().links.remote_memory);
      if (speeds.links.remote_memory) {
        EXPECT_GT(*speeds.links.remote_memory, 0);
        EXPECT_LE(*speeds.links.remote_memory, 1.2 * speeds.links.memory);
        EXPECT_EQ(speeds.sources.remote_memory, Source::measured);
      }
    }
  }
}

}  // namespace
}  // namespace cnn::allreduce
