#include "allreduce/rank_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <variant>

#include "runtime/error.h"

namespace cnn::allreduce {
namespace {

int rank_at(const std::vector<int>& ranks, int position) {
  return ranks[static_cast<std::size_t>(position)];
}

// Returns, by rank, the first rank with the same place.
template <class Place>
std::vector<int> first_ranks(const std::vector<Place>& place_of) {
  std::map<Place, int> first;
  std::vector<int> result;
  for (const Place& place : place_of) {
    const auto rank = static_cast<int>(result.size());
    result.push_back(first.try_emplace(place, rank).first->second);
  }
  return result;
}

// Returns the host and NUMA node of each rank.
std::vector<std::pair<int, int>> nodes_of(const Topology& topology) {
  std::vector<std::pair<int, int>> nodes;
  for (std::size_t rank = 0; rank < topology.host_of.size(); ++rank) {
    const int node = topology.numa_node_of.empty() ? 0 : topology.numa_node_of[rank];
    nodes.emplace_back(topology.host_of[rank], node);
  }
  return nodes;
}

}  // namespace

std::vector<int> ranks_by_position(const Topology& topology) {
  const std::vector<int> first_of_host = first_ranks(topology.host_of);
  const std::vector<std::pair<int, int>> nodes = nodes_of(topology);
  const std::vector<int> first_of_node = first_ranks(nodes);
  std::vector<int> ranks(topology.host_of.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::stable_sort(ranks, {}, [&](int rank) {
    const auto i = static_cast<std::size_t>(rank);
    return std::pair(first_of_host[i], first_of_node[i]);
  });
  return ranks;
}

bool hosts_are_contiguous(const Topology& topology) {
  return std::ranges::is_sorted(ranks_by_position({topology.host_of}));
}

bool nodes_are_contiguous(const Topology& topology) {
  return std::ranges::is_sorted(ranks_by_position(topology));
}

void set_numa_nodes(Topology& topology, std::vector<int> nodes) {
  check(nodes.size() == topology.host_of.size(), "each rank needs a NUMA node, or an unknown one");
  std::map<int, std::set<int>> of_host;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    of_host[topology.host_of[rank]].insert(nodes[rank]);
  }
  bool several = false;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    const std::set<int>& known = of_host.at(topology.host_of[rank]);
    const bool is_one = *known.begin() < 0 || known.size() == 1;
    nodes[rank] = is_one ? 0 : nodes[rank];
    several = several || !is_one;
  }
  topology.numa_node_of = several ? std::move(nodes) : std::vector<int>();
}

std::vector<std::vector<int>> ranks_by_node(const Topology& topology) {
  std::vector<std::vector<int>> nodes;
  for (const int rank : ranks_by_position(topology)) {
    if (nodes.empty() || !topology.same_node(nodes.back().front(), rank)) {
      nodes.emplace_back();
    }
    nodes.back().push_back(rank);
  }
  return nodes;
}

std::optional<int> ranks_of_each_node(const Topology& topology) {
  const std::vector<std::vector<int>> nodes = ranks_by_node(topology);
  std::map<int, int> nodes_of_host;
  for (const std::vector<int>& ranks : nodes) {
    ++nodes_of_host[topology.host_of[static_cast<std::size_t>(ranks.front())]];
  }
  const int each = nodes_of_host.begin()->second;
  const bool alike =
      std::ranges::all_of(nodes_of_host, [&](const auto& host) { return host.second == each; }) &&
      std::ranges::all_of(nodes, [&](const auto& n) { return n.size() == nodes.front().size(); });
  return each > 1 && alike ? std::optional(static_cast<int>(nodes.front().size())) : std::nullopt;
}

std::size_t dims_within_hosts(const Topology& topology, const std::vector<int>& dims) {
  std::size_t within = 0, block = 1;
  for (const int size : dims) {
    block *= static_cast<std::size_t>(size);
    for (std::size_t rank = 0; rank < topology.host_of.size(); ++rank) {
      if (topology.host_of[rank] != topology.host_of[rank / block * block]) {
        return within;
      }
    }
    ++within;
  }
  return within;
}

Topology by_position(const Topology& topology, const std::vector<int>& ranks) {
  Topology result;
  for (const int rank : ranks) {
    result.host_of.push_back(topology.host_of[static_cast<std::size_t>(rank)]);
    if (!topology.link.empty()) {
      result.link.push_back(topology.link[static_cast<std::size_t>(rank)]);
    }
    if (!topology.numa_node_of.empty()) {
      result.numa_node_of.push_back(topology.numa_node_of[static_cast<std::size_t>(rank)]);
    }
  }
  return result;
}

void rename_positions(RankPlan& plan, const std::vector<int>& ranks) {
  for (Chunk& chunk : plan.chunks) {
    for (Action& action : chunk.actions) {
      if (auto* const send = std::get_if<Send>(&action)) {
        send->to = rank_at(ranks, send->to);
      } else if (auto* const receive = std::get_if<Receive>(&action)) {
        receive->from = rank_at(ranks, receive->from);
      }
    }
  }
  for (Operand& operand : plan.operands) {
    if (operand.source == Operand::Source::peer_buffer) {
      operand.index = static_cast<std::size_t>(ranks[operand.index]);
    }
  }
  for (std::vector<int>& group : plan.groups) {
    for (int& member : group) {
      member = rank_at(ranks, member);
    }
    std::ranges::sort(group);
  }
}

}  // namespace cnn::allreduce
