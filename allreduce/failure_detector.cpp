#include "allreduce/failure_detector.h"

#include <algorithm>
#include <cstddef>

namespace cnn::allreduce {
namespace {

// The ranks of each host, in the order of their first ranks.
std::vector<std::vector<int>> ranks_by_host(std::span<const int> host_of) {
  std::map<int, std::size_t> places;
  std::vector<std::vector<int>> hosts;
  for (std::size_t rank = 0; rank < host_of.size(); ++rank) {
    const auto [place, is_new] = places.try_emplace(host_of[rank], hosts.size());
    if (is_new) {
      hosts.emplace_back();
    }
    hosts[place->second].push_back(static_cast<int>(rank));
  }
  return hosts;
}

}  // namespace

WatchGraph watch_graph(std::span<const int> host_of, int rank) {
  const std::vector<std::vector<int>> hosts = ranks_by_host(host_of);
  const auto has = [rank](const std::vector<int>& ranks) {
    return std::ranges::binary_search(ranks, rank);
  };
  const auto mine = std::ranges::find_if(hosts, has);
  const auto self = static_cast<std::size_t>(mine - hosts.begin()), n = hosts.size();
  const auto place = static_cast<std::size_t>(std::ranges::find(*mine, rank) - mine->begin());
  WatchGraph graph;
  for (std::size_t distance = 1; distance < n; distance *= 2) {
    const std::vector<int>& behind = hosts[(self + distance) % n];
    graph.to.push_back(behind[place % behind.size()]);
    const std::vector<int>& before = hosts[(self + n - distance) % n];
    for (std::size_t other = place; other < before.size(); other += mine->size()) {
      graph.from.push_back(before[other]);
    }
  }
  return graph;
}

FailureDetector::FailureDetector(std::span<const int> host_of, int rank)
    : graph_(watch_graph(host_of, rank)), rank_(rank) {
  for (std::size_t other = 0; other < host_of.size(); ++other) {
    if (host_of[other] == host_of[static_cast<std::size_t>(rank)]) {
      near_.push_back(static_cast<int>(other));
    }
  }
}

// A rank that is watched sends signs without being asked.
std::vector<std::pair<int, FailureDetector::Sign>> FailureDetector::beat(Duration lived,
                                                                         std::uint64_t progress,
                                                                         int waits_for) {
  for (const int rank : graph_.from) {
    heard_.try_emplace(rank, lived);  // the first time
  }
  const Sign sign{.progress = progress,
                  .waits_for = waits_for,
                  .root = waits_for < 0 ? -1 : root_of(waits_for)};
  std::vector<int> to = graph_.to;
  to.insert(to.end(), askers_.begin(), askers_.end());
  askers_.clear();
  const bool asks = waits_for >= 0 && waits_for != rank_ && !heard_.contains(waits_for);
  if (asks) {
    if (!std::ranges::binary_search(near_, waits_for)) {
      asked_.try_emplace(waits_for, lived);
    }
    to.push_back(waits_for);
  }
  std::ranges::sort(to);
  to.erase(std::unique(to.begin(), to.end()), to.end());
  std::vector<std::pair<int, Sign>> signs;
  signs.reserve(to.size());
  for (const int rank : to) {
    signs.emplace_back(rank, sign);
    signs.back().second.asks = asks && rank == waits_for ? 1 : 0;
  }
  return signs;
}

void FailureDetector::heard(int from, const Sign& sign, Duration lived) {
  if (const auto watched = heard_.find(from); watched != heard_.end()) {
    watched->second = lived;
  }
  asked_.erase(from);
  known_[from] = sign;
  if (sign.asks != 0) {
    askers_.push_back(from);
  }
}

FailureDetector::Silence FailureDetector::longest(Duration lived) const {
  Silence longest;
  for (const std::map<int, Duration>* const since : {&heard_, &asked_}) {
    for (const auto& [rank, when] : *since) {
      if (longest.rank < 0 || lived - when > longest.lasts) {
        longest = {rank, lived - when};
      }
    }
  }
  return longest;
}

// Names one of the ranks that wait for one another in a circle, but not this rank.
int FailureDetector::root_of(int rank) const {
  const auto known = known_.find(rank);
  if (known == known_.end() || known->second.waits_for < 0) {
    return rank;
  }
  const Sign& sign = known->second;
  return sign.root >= 0 && sign.root != rank_ ? sign.root
         : sign.waits_for != rank_            ? sign.waits_for
                                              : rank;
}

std::uint64_t FailureDetector::progress_of(int rank) const {
  const auto known = known_.find(rank);
  return known == known_.end() ? 0 : known->second.progress;
}

}  // namespace cnn::allreduce
