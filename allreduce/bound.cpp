#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "allreduce/cost.h"

namespace cnn::allreduce {
namespace {

// Each of n ends of unequal links sends and receives a whole buffer at least, and all of them
// together (n - 1) buffers to the sums and as much back.
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
  double seconds = exchange(of_hosts, bytes);
  const double in_memory = 2 * bytes / links.memory;
  for (const auto& [host, of_host] : of_ranks) {
    const double by_messages = exchange(of_host, bytes);
    seconds = std::max(seconds, peers_memory ? std::min(by_messages, in_memory) : by_messages);
  }
  const auto n = static_cast<double>(topology.ranks());
  // Ranks of a host that see one another's memory need no messages inside it.
  const std::size_t ends =
      peers_memory && of_hosts.size() > 1 ? of_hosts.size() : topology.host_of.size();
  const auto steps = static_cast<int>(std::bit_width(ends - 1));
  const double message = steps * links.latency;
  const bool meets = peers_memory && of_hosts.size() == 1 && links.meeting;
  const double latency = meets ? std::min(message, *links.meeting) : message;
  // With the memory of peers in sight, sums inside a host are part of reading it.
  std::size_t largest = 1;  // ranks of a host
  for (const auto& [host, of_host] : of_ranks) {
    largest = std::max(largest, of_host.size());
  }
  const auto hosts = static_cast<double>(of_hosts.size());
  const double added =
      peers_memory ? (hosts - 1) / hosts / static_cast<double>(largest) : (n - 1) / n;
  const double adding = added * bytes * links.add;
  return std::max({seconds, latency, adding});
}

}  // namespace cnn::allreduce
