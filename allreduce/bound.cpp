#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "allreduce/cost.h"

namespace cnn::allreduce {
namespace {

// Returns a lower bound of the seconds of n ranks with these links. Each sends and receives at
// least a whole buffer, and all together send (n - 1) buffers to the sums and as many back.
double exchange(const std::vector<double>& links, double bytes) {
  if (links.size() < 2) {
    return 0;
  }
  double total = 0;
  for (const double link : links) {
    total += link;
  }
  const auto n = static_cast<double>(links.size());
  const bool equal = std::ranges::min(links) == std::ranges::max(links);
  const double all = 2 * (n - 1) * bytes / total;
  return equal ? all : std::max(all, bytes / std::ranges::min(links));
}

}  // namespace

double bound(const Topology& topology, double bytes, const Links& links, bool peers_memory) {
  std::vector<double> of_hosts;
  std::map<int, std::vector<double>> of_ranks;  // by host
  for (std::size_t rank = 0; rank < topology.host_of.size(); ++rank) {
    const double factor = topology.link.empty() ? 1 : topology.link[rank];
    std::vector<double>& of_host = of_ranks[topology.host_of[rank]];
    if (of_host.empty()) {
      of_hosts.push_back(links.host * factor);
    }
    of_host.push_back(links.rank * factor);
  }
  const auto n = static_cast<double>(topology.ranks());
  double seconds = exchange(of_hosts, bytes);
  const double in_memory = 2 * bytes / links.memory;
  // Ranks of a host may communicate through other hosts, so with several hosts all links together
  // count.
  double all_links = 0;
  for (const auto& [host, of_host] : of_ranks) {
    all_links += std::accumulate(of_host.begin(), of_host.end(), 0.0);
  }
  all_links += std::accumulate(of_hosts.begin(), of_hosts.end(), 0.0);
  const double by_all = 2 * (n - 1) * bytes / all_links;
  for (const auto& [host, of_host] : of_ranks) {
    const double by_messages = of_hosts.size() == 1 ? exchange(of_host, bytes) : by_all;
    seconds = std::max(seconds, peers_memory ? std::min(by_messages, in_memory) : by_messages);
  }
  if (n < 2) {
    return 0;
  }
  // One message can be enough: in an all-to-all no rank waits for a second one.
  const double latency = peers_memory && of_hosts.size() == 1
                             ? std::min(links.latency, links.barrier.value_or(links.latency))
                             : links.latency;
  // The time of sums over the memory of peers is part of the time of memory.
  const double adding = peers_memory ? 0 : (n - 1) / n * bytes * links.add;
  return std::max({seconds, latency, adding});
}

}  // namespace cnn::allreduce
