#include "allreduce/failure_detector.h"

#include <algorithm>
#include <cstddef>

namespace cnn::allreduce {
namespace {

// Returns the ranks of each host; hosts stand in the order of their first ranks.
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
      local_ranks_.push_back(static_cast<int>(other));
    }
  }
}

// A watched rank sends heartbeats without being probed.
std::vector<std::pair<int, FailureDetector::Heartbeat>> FailureDetector::begin_period(
    Duration uptime, std::uint64_t progress, int waits_for) {
  for (const int rank : graph_.from) {
    last_seen_.try_emplace(rank, uptime);  // only in the first period
  }
  const Heartbeat heartbeat{.progress = progress,
                            .waits_for = waits_for,
                            .root = waits_for < 0 ? -1 : root_of(waits_for)};
  std::vector<int> to = graph_.to;
  to.insert(to.end(), reply_to_.begin(), reply_to_.end());
  reply_to_.clear();
  std::erase_if(probed_, [&](const auto& probe) { return probe.first != waits_for; });
  const bool probes = waits_for >= 0 && waits_for != rank_ && !last_seen_.contains(waits_for);
  if (probes) {
    if (!std::ranges::binary_search(local_ranks_, waits_for)) {
      probed_.try_emplace(waits_for, uptime);
    }
    to.push_back(waits_for);
  }
  std::ranges::sort(to);
  to.erase(std::unique(to.begin(), to.end()), to.end());
  std::vector<std::pair<int, Heartbeat>> heartbeats;
  heartbeats.reserve(to.size());
  for (const int rank : to) {
    heartbeats.emplace_back(rank, heartbeat);
    heartbeats.back().second.wants_reply = probes && rank == waits_for ? 1 : 0;
  }
  return heartbeats;
}

// A rank cannot have missed a probe that it was not sent.
void FailureDetector::on_skip(int to, Duration uptime) {
  const auto probe = probed_.find(to);
  if (probe != probed_.end() && probe->second == uptime) {
    probed_.erase(probe);
  }
  reply_to_.push_back(to);
}

void FailureDetector::on_receive(int from, const Heartbeat& heartbeat, Duration uptime) {
  if (const auto watched = last_seen_.find(from); watched != last_seen_.end()) {
    watched->second = uptime;
  }
  probed_.erase(from);
  latest_[from] = heartbeat;
  if (heartbeat.wants_reply != 0) {
    reply_to_.push_back(from);
  }
}

FailureDetector::Overdue FailureDetector::most_overdue(Duration uptime) const {
  Overdue longest;
  for (const std::map<int, Duration>* const since : {&last_seen_, &probed_}) {
    for (const auto& [rank, when] : *since) {
      if (longest.rank < 0 || uptime - when > longest.since) {
        longest = {rank, uptime - when};
      }
    }
  }
  return longest;
}

// If ranks wait for one another in a cycle, returns any of them except this one.
int FailureDetector::root_of(int rank) const {
  const auto known = latest_.find(rank);
  if (known == latest_.end() || known->second.waits_for < 0) {
    return rank;
  }
  const Heartbeat& heartbeat = known->second;
  return heartbeat.root >= 0 && heartbeat.root != rank_ ? heartbeat.root
         : heartbeat.waits_for != rank_                 ? heartbeat.waits_for
                                                        : rank;
}

std::uint64_t FailureDetector::progress_of(int rank) const {
  const auto known = latest_.find(rank);
  return known == latest_.end() ? 0 : known->second.progress;
}

}  // namespace cnn::allreduce
