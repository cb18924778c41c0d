#include "bench/ranks/rank_nodes.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "allreduce/all_gather.h"
#include "allreduce/rank_order.h"
#include "bench/machine/numa_nodes.h"
#include "bench/machine/processors.h"
#include "bench/ranks/peers.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

// Returns "0-3,5" for ascending numbers.
std::string ranges_text(std::span<const int> numbers) {
  std::string text;
  for (std::size_t first = 0, next = 0; first < numbers.size(); first = next) {
    next = first + 1;
    while (next < numbers.size() && numbers[next] == numbers[next - 1] + 1) {
      ++next;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[first]);
    text += next - first > 1 ? fmt::format("-{}", numbers[next - 1]) : "";
  }
  return text;
}

}  // namespace

std::vector<int> numa_nodes_of_ranks(int ranks, const std::filesystem::path& root) {
  const std::vector<int> processors = usable_processors();
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) {
    nodes.push_back(numa_node_of(part_of(processors, rank, ranks), root).value_or(-1));
  }
  return nodes;
}

void gather_numa_nodes(allreduce::World& world, std::span<allreduce::RankPlacement> placements,
                       int each) {
  std::vector<std::vector<int>> all = allreduce::all_gather(world, numa_nodes_of_ranks(each));
  for (std::size_t process = 0; process < placements.size(); ++process) {
    placements[process].nodes = std::move(all[process]);
  }
}

allreduce::Topology with_numa_nodes(allreduce::Topology topology, const CommFlags& flags) {
  const std::vector<std::int64_t>& given = flags.numa_nodes;
  const std::size_t ranks = topology.host_of.size();
  if (given.empty() || ranks == 1) {
    return topology;
  }
  check(ranks % given.size() == 0,
        fmt::format("--comm_numa_nodes={}: {} nodes for {} ranks; give one for each rank, or a "
                    "shorter list that is repeated for all of them",
                    fmt::join(given, ","), given.size(), ranks));
  std::vector<int> nodes;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    nodes.push_back(static_cast<int>(given[rank % given.size()]));
  }
  set_numa_nodes(topology, std::move(nodes));
  return topology;
}

allreduce::Topology topology_of_threads(const Config& config) {
  allreduce::Topology topology = allreduce::ranks_on_hosts(1, config.num_gpus);
  set_numa_nodes(topology, numa_nodes_of_ranks(config.num_gpus));
  return with_numa_nodes(std::move(topology), config.comm);
}

allreduce::Topology topology_of_run(const Config& config, const Peers* peers) {
  return peers != nullptr ? peers->topology() : topology_of_threads(config);
}

std::string numa_text(const allreduce::Topology& topology) {
  if (topology.numa_node_of.empty()) {
    return {};
  }
  std::vector<std::string> hosts;
  std::size_t nodes = 0;
  int host = -1;
  for (const std::vector<int>& ranks : ranks_by_node(topology)) {
    const int of_node = topology.host_of[static_cast<std::size_t>(ranks.front())];
    if (of_node != host) {
      hosts.emplace_back();
      host = of_node;
    }
    hosts.back() += (hosts.back().empty() ? "" : " | ") + ranges_text(ranks);
    ++nodes;
  }
  return fmt::format("ranks {} on {} NUMA nodes", fmt::join(hosts, "; "), nodes);
}

}  // namespace cnn::bench
