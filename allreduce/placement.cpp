#include "allreduce/placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <variant>

namespace cnn::allreduce {
namespace {

int rank_at(const std::vector<int>& ranks, int position) {
  return ranks[static_cast<std::size_t>(position)];
}

}  // namespace

std::vector<int> ranks_by_position(const Topology& topology) {
  std::map<int, int> first;  // rank of each host
  for (int rank = topology.ranks() - 1; rank >= 0; --rank) {
    first[topology.host_of[static_cast<std::size_t>(rank)]] = rank;
  }
  std::vector<int> ranks(topology.host_of.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::stable_sort(ranks, {}, [&](int rank) {
    return first.at(topology.host_of[static_cast<std::size_t>(rank)]);
  });
  return ranks;
}

bool hosts_are_contiguous(const Topology& topology) {
  return std::ranges::is_sorted(ranks_by_position(topology));
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
  for (Part& part : plan.parts) {
    if (part.at == Part::At::peer) {
      part.where = static_cast<std::size_t>(ranks[part.where]);
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
