#include "bench/ranks/rank_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

#include "allreduce/rank_order.h"
#include "bench/machine/processors.h"
#include "bench/ranks/exchange.h"
#include "bench/ranks/exchange_flags.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using allreduce::RankPlacement;
using allreduce::ranks_on_hosts;
using allreduce::Topology;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

CommFlags with_nodes(std::vector<std::int64_t> nodes) {
  CommFlags flags;
  flags.numa_nodes = std::move(nodes);
  return flags;
}

TEST(RankNodes, AreThoseOfTheProcessorsOfThisProcess) {
  const tests::TemporaryFolder root;
  EXPECT_THAT(numa_nodes_of_ranks(3, root.path()), ElementsAre(-1, -1, -1));
  std::map<int, std::string> cpus_of;
  const std::vector<int> usable = usable_processors();
  for (int part = 0; part < 2; ++part) {  // each half of the processors forms a node
    for (const int cpu : part_of(usable, part, 2)) {
      std::string& cpus = cpus_of[part + 4];
      cpus += (cpus.empty() ? "" : ",") + std::to_string(cpu);
    }
  }
  for (const auto& [node, cpus] : cpus_of) {
    root.write("sys/devices/system/node/node" + std::to_string(node) + "/cpulist", cpus);
  }
  if (usable.size() > 1) {
    EXPECT_THAT(numa_nodes_of_ranks(2, root.path()), ElementsAre(4, 5));
    EXPECT_THAT(numa_nodes_of_ranks(1, root.path()), ElementsAre(-1));
  }
}

TEST(RankNodes, AreUsedOnlyIfAllOfAHostAreKnown) {
  const auto placement = [](const char* memory, std::vector<int> nodes) {
    return RankPlacement{.memory = memory, .nodes = std::move(nodes)};
  };
  EXPECT_THAT(
      topology_of(std::vector{placement("a", {0}), placement("b", {1}), placement("a", {1})})
          .numa_node_of,
      ElementsAre(0, 0, 1));
  EXPECT_THAT(
      topology_of(std::vector{placement("a", {0, 0}), placement("a", {1, 1})}, 2).numa_node_of,
      ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(
      topology_of(std::vector{placement("a", {0}), placement("a", {-1}), placement("a", {1})})
          .numa_node_of,
      IsEmpty());
  EXPECT_THAT(
      topology_of(std::vector{placement("a", {1}), placement("a", {1}), placement("b", {0})})
          .numa_node_of,
      IsEmpty());
  EXPECT_THAT(topology_of(std::vector{placement("a", {}), placement("a", {})}).numa_node_of,
              IsEmpty());
}

TEST(RankNodes, CanBeGivenByHand) {
  const Topology four = ranks_on_hosts(1, 4);
  EXPECT_THAT(with_numa_nodes(four, with_nodes({0, 0, 1, 1})).numa_node_of,
              ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(with_numa_nodes(four, with_nodes({0, 1})).numa_node_of, ElementsAre(0, 1, 0, 1));
  Topology found = four;
  found.numa_node_of = {0, 1, 0, 1};
  EXPECT_THAT(with_numa_nodes(found, with_nodes({0})).numa_node_of, IsEmpty());
  EXPECT_THAT(with_numa_nodes(found, {}).numa_node_of, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(with_numa_nodes(ranks_on_hosts(1, 1), with_nodes({0, 1})).numa_node_of, IsEmpty());
  EXPECT_EQ(tests::error_of([&] {
              with_numa_nodes(four, with_nodes({0, 1, 2}));
            }),
            "--comm_numa_nodes=0,1,2: 3 nodes for 4 ranks; give one for each rank, or a shorter "
            "list that is repeated for all of them");
}

TEST(RankNodes, AreNamed) {
  EXPECT_EQ(numa_text(ranks_on_hosts(2, 4)), "");
  EXPECT_EQ(numa_text(with_numa_nodes(ranks_on_hosts(1, 8), with_nodes({0, 0, 0, 0, 1, 1, 1, 1}))),
            "ranks 0-3 | 4-7 on 2 NUMA nodes");
  EXPECT_EQ(numa_text(with_numa_nodes(ranks_on_hosts(2, 4), with_nodes({0, 1}))),
            "ranks 0,2 | 1,3; 4,6 | 5,7 on 4 NUMA nodes");
}

TEST(RankNodes, ChooseASumByNodeWhereTheSpeedsSaySo) {
  Config config;
  config.comm.numa_gbps = 5;
  const Topology nodes = with_numa_nodes(ranks_on_hosts(1, 8), with_nodes({0, 1}));
  const auto best = [&] {
    return candidates_for(make_exchange(config, nodes, true).settings, 4'000'000)
        .front()
        .algorithm->name;
  };
  EXPECT_EQ(best(), "shared_by_node");
  config.comm.numa_gbps = 20;
  EXPECT_EQ(best(), "shared");
}

TEST(RankNodes, AreNotedWhereAnOrderOfSumsGoesAcrossThem) {
  Config config;
  config.comm.order = allreduce::Order::rank;
  const auto notes = [&](std::vector<std::int64_t> nodes) {
    const Topology topology = with_numa_nodes(ranks_on_hosts(1, 4), with_nodes(std::move(nodes)));
    return make_exchange(config, topology, true).notes;
  };
  EXPECT_THAT(notes({0, 1}), ElementsAre(HasSubstr("not numbered by NUMA node")));
  EXPECT_THAT(notes({0, 0, 1, 1}), IsEmpty());
}

// A calibration file of ranks on one node does not contain the speed between nodes.
TEST(RankNodes, NeedACalibrationThatKnowsTheirSpeed) {
  const tests::TemporaryFolder folder;
  const std::string file = (folder.path() / "links.json").string();
  Topology topology = ranks_on_hosts(1, 4);
  allreduce::LinkSpeeds speeds;
  speeds.limits = {.host_of = {0, 0, 0, 0}, .memory = {{1e6, 1e10}}, .hop = 1e-7};
  save_links(file, topology, speeds);
  EXPECT_TRUE(load_links(file, topology));
  topology.numa_node_of = {0, 0, 1, 1};
  EXPECT_FALSE(load_links(file, topology));
  speeds.links.remote_memory = 4e9;
  save_links(file, topology, speeds);
  const auto found = load_links(file, topology);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->links.remote_memory, 4e9);
  EXPECT_EQ(found->sources.remote_memory, allreduce::Source::measured);
}

}  // namespace
}  // namespace cnn::bench
