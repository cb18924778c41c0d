#include "allreduce/calibrate.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "allreduce/engine.h"
#include "allreduce/number_all_gather.h"
#include "allreduce/plan_builder.h"
#include "allreduce/rank_order.h"
#include "runtime/seconds_since.h"

namespace cnn::allreduce {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int probes = 9;            // the measurements that share the time
constexpr int max_runs = 50;         // of one measurement
constexpr int at_once = 16;          // concurrent messages, or barriers in a row
constexpr std::size_t few = 16;      // elements of a small message
constexpr std::size_t bulk = 16384;  // elements of the smallest message that is timed for bandwidth
// Minimum seconds of a timed transfer: a shaped link passes some hundred KB at once, and TCP takes
// a while to reach its full speed.
constexpr double long_transfer = 0.05;

// The ranks to which a rank sends and from which it receives; -1: none.
struct Neighbours {
  int to = -1, from = -1;
};

std::vector<int> ranks_of(const Topology& topology, int host) {
  std::vector<int> ranks;
  for (int rank = 0; rank < topology.ranks(); ++rank) {
    if (topology.host_of[static_cast<std::size_t>(rank)] == host) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

Neighbours in_ring(std::span<const int> ranks, int rank) {
  const auto self = static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
  if (self >= ranks.size() || ranks.size() < 2) {
    return {};
  }
  return {ranks[(self + 1) % ranks.size()], ranks[(self + ranks.size() - 1) % ranks.size()]};
}

// Returns the ranks of each host.
std::vector<std::vector<int>> by_host(const Topology& topology) {
  std::vector<std::vector<int>> hosts;
  for (int host = 0; host <= *std::ranges::max_element(topology.host_of); ++host) {
    if (std::vector<int> ranks = ranks_of(topology, host); !ranks.empty()) {
      hosts.push_back(std::move(ranks));
    }
  }
  return hosts;
}

std::size_t smallest(std::span<const std::vector<int>> hosts) {
  std::size_t each = hosts.front().size();
  for (const std::vector<int>& ranks : hosts) {
    each = std::min(each, ranks.size());
  }
  return each;
}

// Returns the ranks at the same place in each host as this one; none if a host is too small.
std::vector<int> across(std::span<const std::vector<int>> hosts, int rank) {
  std::vector<int> peers;
  for (std::size_t place = 0; place < smallest(hosts); ++place) {
    const auto there = [&](const std::vector<int>& ranks) { return ranks[place] == rank; };
    if (std::ranges::any_of(hosts, there)) {
      for (const std::vector<int>& ranks : hosts) {
        peers.push_back(ranks[place]);
      }
    }
  }
  return peers;
}

// A round-robin tournament by the circle method: in rounds_of(hosts) rounds all pairs of hosts
// meet. partner_of() returns the partner of a host in a round, or the host itself if it has none.
int rounds_of(int hosts) { return hosts + hosts % 2 - 1; }
int partner_of(int host, int hosts, int round) {
  const int circle = rounds_of(hosts);  // hosts on the circle; one more stays in place
  int other = host == circle ? round * ((circle + 1) / 2) % circle
                             : (round - host % circle + circle) % circle;
  other = other == host ? circle : other;
  return other < hosts ? other : host;
}

// Latency and overhead of small messages, and the bandwidth of a large one.
struct MessageSpeed {
  double latency = 0, post = 0, bytes_per_second = 0;
};

class Measurement {
 public:
  Measurement(Transport& transport, const simd::Loops& loops, const Topology& topology,
              const CalibrationBudget& limits)
      : transport_(transport),
        loops_(loops),
        topology_(topology),
        share_(limits.seconds / probes),
        numbers_(transport, loops, topology, 1) {
    const Bytes memory = transport.allocate_shared(limits.bytes);
    buffer_ = {reinterpret_cast<float*>(memory.data()), limits.bytes / sizeof(float)};
    std::ranges::fill(buffer_, 1.0F);  // otherwise the system maps all to one page of zeros
  }

  MessageSpeed messages(const Neighbours& with) {
    const double one = least(message_plan(with, 1, few));
    const double several = least(message_plan(with, at_once, few));
    const double post = std::max(0.0, (several - one) / (2 * (at_once - 1)));
    std::size_t elements = std::min(bulk, buffer_.size());
    double large = least(message_plan(with, 1, elements));
    while (elements < buffer_.size() && large < long_transfer) {
      constexpr std::size_t steps = 8;  // the factor between two sizes
      elements = std::min(elements * steps, buffer_.size());
      large = agreed(message_plan(with, 1, elements));
    }
    const double bytes = static_cast<double>(elements * sizeof(float));
    return {std::max(shortest, one - 2 * post), post, bytes / std::max(shortest, large - one)};
  }

  // Returns, by rank, the minimum seconds of an exchange with several partners in turn, of the
  // bytes that a link of that speed moves in a moment. This is the time of the rank's own link
  // unless all its partners have slower ones. hosts: one rank of each host; other ranks only take
  // part in barriers.
  std::vector<double> exchanges(std::span<const int> hosts, double bytes_per_second) {
    constexpr int max_rounds = 4, runs = 2;
    const auto elements = std::clamp<std::size_t>(
        static_cast<std::size_t>(share_ / 2 * bytes_per_second / sizeof(float)),
        std::min(bulk, buffer_.size()), buffer_.size());
    const auto count = static_cast<int>(hosts.size());
    const auto self = static_cast<int>(std::ranges::find(hosts, transport_.rank()) - hosts.begin());
    std::vector<double> least(static_cast<std::size_t>(topology_.ranks()),
                              std::numeric_limits<double>::infinity());
    for (int round = 0; round < std::min(rounds_of(count), max_rounds); ++round) {
      const int other = self < count ? partner_of(self, count, round) : self;
      const int with = other == self ? -1 : hosts[static_cast<std::size_t>(other)];
      Engine engine(transport_, loops_, message_plan({with, with}, 1, elements), {&buffer_, 1});
      for (int run = 0; run < runs; ++run) {
        const std::span<const double> each = times([&] { engine.run(1); });
        for (std::size_t rank = 0; rank < least.size(); ++rank) {
          const auto host = std::ranges::find(hosts, static_cast<int>(rank));
          const auto number = static_cast<int>(host - hosts.begin());
          if (number < count && partner_of(number, count, round) != number) {
            least[rank] = std::min(least[rank], each[rank]);
          }
        }
      }
    }
    return least;
  }

  int rank() const { return transport_.rank(); }

  // Returns the seconds of a barrier. host: the ranks of this rank's host.
  double barrier(const std::vector<int>& host) {
    const Options options;  // must outlive the builder
    PlanBuilder builder(options);
    builder.begin_chunk();
    for (int i = 0; i < at_once; ++i) {
      builder.barrier(host);
    }
    return std::max(shortest, least(std::move(builder).finish()) / at_once);
  }

  // Returns the bandwidth of another NUMA node's memory relative to this one's, at most 1, by
  // copies from both. peer: the rank of another node to copy from; -1: none.
  double remote_share(int peer) {
    const double near = copy_seconds(transport_.rank());
    const double far = copy_seconds(peer < 0 ? transport_.rank() : peer);
    const double one_access = near / 2;  // a copy reads and writes
    return std::clamp(one_access / std::max(shortest, far - one_access), min_share, 1.0);
  }

  // Returns the seconds per byte that is added to another.
  double add() {
    const std::size_t n = buffer_.size() / 2;
    const std::array<simd::Operand, 2> operands{{{buffer_.data()}, {&buffer_[n]}}};
    float* const to = buffer_.data();
    const simd::Sum sum{operands.data(), operands.size(), &to, 1, n, false, 0.5F};
    return least([&] { loops_.sum(sum); }) / static_cast<double>(n * sizeof(float));
  }

 private:
  static constexpr double shortest = 1e-9;
  static constexpr double min_share = 0.01;

  RankPlan message_plan(const Neighbours& with, int messages, std::size_t elements) const {
    const Options options{.chunks = messages, .window = messages};
    PlanBuilder builder(options);
    for (int i = 0; i < messages; ++i) {
      builder.begin_chunk();
      if (with.to >= 0) {
        builder.send(with.to, {0, elements});
        builder.receive_to_scratch(with.from, {0, elements});
        builder.wait();
      }
    }
    return std::move(builder).finish();
  }

  // Returns the least time of a copy from that rank's memory to this one's.
  double copy_seconds(int from) {
    const std::size_t n = buffer_.size() / 2;
    auto* const own = reinterpret_cast<std::byte*>(buffer_.data());
    std::byte* const there = from == transport_.rank() ? own : transport_.peer_address(from, own);
    const simd::Operand operand{there, simd::Type::f32};
    float* const to = &buffer_[n];
    return least([&] { loops_.sum({&operand, 1, &to, 1, n, false, 1}); });
  }

  double least(RankPlan plan) {
    Engine engine(transport_, loops_, std::move(plan), {&buffer_, 1});
    const float mean = 1 / static_cast<float>(topology_.ranks());
    return least([&] { engine.run(mean); });
  }

  // Returns the least time of a long message, which is repeated until the two fastest agree.
  double agreed(RankPlan plan) {
    constexpr double alike = 1.05;
    constexpr int most = 8;
    Engine engine(transport_, loops_, std::move(plan), {&buffer_, 1});
    double best = timed([&] { engine.run(1); }), second = std::numeric_limits<double>::infinity();
    for (int run = 1; run < most && second > alike * best; ++run) {
      const double next = timed([&] { engine.run(1); });
      second = std::min(second, std::max(best, next));
      best = std::min(best, next);
    }
    return best;
  }

  // Returns the least time of several runs, each of which counts as long as on its slowest rank. So
  // the result is the same on all ranks.
  template <class Run>
  double least(const Run& run) {
    double best = timed(run);
    const double affordable = std::clamp(share_ / best, 1.0, static_cast<double>(max_runs));
    for (int i = 0; i < static_cast<int>(affordable); ++i) {
      best = std::min(best, timed(run));
    }
    return best;
  }
  template <class Run>
  double timed(const Run& run) {
    return std::max(shortest, std::ranges::max(times(run)));
  }
  template <class Run>
  std::span<const double> times(const Run& run) {  // by rank
    numbers_.barrier();
    const Clock::time_point start = Clock::now();
    run();
    const double mine = seconds_since(start);
    return numbers_.gather({&mine, 1});
  }

  Transport& transport_;
  const simd::Loops& loops_;
  const Topology& topology_;
  double share_;  // seconds of each measurement
  NumberAllGather numbers_;
  std::span<float> buffer_;
};

// Rounds to four steps per power of two.
double rounded(double value) {
  constexpr double steps = 4;
  return value > 0 ? std::exp2(std::round(std::log2(value) * steps) / steps) : 0;
}

// Returns, by rank, the speed of its host's link relative to the fastest; empty if all are equal.
// seconds: by rank; the first rank of each host counts.
std::vector<double> beside_the_fastest(std::span<const double> seconds,
                                       std::span<const std::vector<int>> hosts, std::size_t ranks) {
  constexpr double alike = 0.8;
  const double fastest = std::ranges::min(seconds);
  std::vector<double> link(ranks, 1);
  for (const std::vector<int>& of_host : hosts) {
    const double factor = fastest / seconds[static_cast<std::size_t>(of_host.front())];
    for (const int rank : of_host) {
      link[static_cast<std::size_t>(rank)] = factor < alike ? rounded(factor) : 1;
    }
  }
  return std::ranges::min(link) < 1 ? link : std::vector<double>();
}

// Returns a rank of the next NUMA node of this rank's host; -1 if its host has one node.
int peer_in_next_node(const Topology& topology, int rank) {
  std::vector<std::vector<int>> nodes = ranks_by_node(topology);
  const int host = topology.host_of[static_cast<std::size_t>(rank)];
  std::erase_if(nodes, [&](const std::vector<int>& node) {
    return topology.host_of[static_cast<std::size_t>(node.front())] != host;
  });
  const auto has_rank = [rank](const std::vector<int>& node) {
    return std::ranges::find(node, rank) != node.end();
  };
  const auto own = std::ranges::find_if(nodes, has_rank);
  const auto place = static_cast<std::size_t>(std::ranges::find(*own, rank) - own->begin());
  const auto next = static_cast<std::size_t>(own - nodes.begin() + 1) % nodes.size();
  return nodes.size() < 2 ? -1 : nodes[next][place % nodes[next].size()];
}

bool has_several_nodes(const Topology& topology) {
  for (int rank = 0; rank < topology.ranks(); ++rank) {
    if (peer_in_next_node(topology, rank) >= 0) {
      return true;
    }
  }
  return false;
}

void measure_remote_memory(Measurement& measurement, const Topology& topology, LinkSpeeds& speeds) {
  const int peer = peer_in_next_node(topology, measurement.rank());
  speeds.links.remote_memory = speeds.links.memory * rounded(measurement.remote_share(peer));
  speeds.sources.remote_memory = Source::measured;
}

void take_latency(const MessageSpeed& speed, Links& links) {
  links.latency = rounded(speed.latency);
  links.post = rounded(speed.post);
}

void measure_between(Measurement& measurement, std::span<const std::vector<int>> hosts,
                     const Topology& topology, LinkSpeeds& speeds) {
  const std::vector<int> peers = across(hosts, measurement.rank());
  const MessageSpeed outside = measurement.messages(in_ring(peers, measurement.rank()));
  take_latency(outside, speeds.links);
  double fastest = outside.bytes_per_second * static_cast<double>(smallest(hosts));
  if (hosts.size() > 2) {  // With two hosts, both ends of the one link have the same speed.
    std::vector<int> firsts;
    firsts.reserve(hosts.size());
    for (const std::vector<int>& ranks : hosts) {
      firsts.push_back(ranks.front());
    }
    speeds.of_rank =
        beside_the_fastest(measurement.exchanges(firsts, fastest), hosts, topology.host_of.size());
  }
  if (!speeds.of_rank.empty()) {
    fastest /= std::ranges::min(speeds.of_rank);  // The ring ran at the speed of the slowest link.
  }
  speeds.links.host = rounded(fastest);
  speeds.sources.host = Source::measured;
  Limits& limits = speeds.limits;
  if (limits.line == 0 && std::ranges::max(limits.host_of) > 0) {
    limits.line = fastest;
    limits.line_source = Source::measured;
  }
}

// Clamps the speeds to the limits of the hardware: a measurement above was made in caches or
// rounded up. Messages inside a host are copies, which read and write each byte, and the sum reads
// it once more, so they get a third of the memory bandwidth at most.
void keep_to_limits(LinkSpeeds& speeds) {
  Links& links = speeds.links;
  const Limits& limits = speeds.limits;
  constexpr double accesses = 3;  // to memory per byte of a message
  const double copies = limits.memory.back().bytes_per_second / accesses;
  if (speeds.sources.rank == Source::measured && links.rank > copies) {
    links.rank = copies;
    speeds.sources.rank = Source::derived;
  }
  if (limits.line > 0 && links.host > limits.line) {
    links.host = limits.line;
    speeds.sources.host = limits.line_source;
  }
  links.latency = std::max(links.latency, limits.hop);
  if (links.barrier) {
    links.barrier = std::max(*links.barrier, limits.hop);
  }
}

}  // namespace

LinkSpeeds measure_links(Transport& transport, const simd::Loops& loops, const Topology& topology,
                         const Links& assumed, const CalibrationBudget& limits) {
  LinkSpeeds speeds{assumed, {}};
  Links& links = speeds.links;
  if (topology.ranks() < 2) {
    return speeds;
  }
  speeds.limits = measure_limits(transport, loops, topology,
                                 {.seconds = limits.seconds, .bytes = limits.memory_bytes});
  Measurement measurement(transport, loops, topology, limits);
  const std::vector<std::vector<int>> hosts = by_host(topology);
  const std::vector<int> mine =
      ranks_of(topology, topology.host_of[static_cast<std::size_t>(transport.rank())]);
  links.add = rounded(measurement.add());
  const bool has_local_peers =
      std::ranges::any_of(hosts, [](const auto& ranks) { return ranks.size() > 1; });
  if (has_local_peers) {
    const MessageSpeed inside = measurement.messages(in_ring(mine, transport.rank()));
    take_latency(inside, links);
    links.rank = rounded(inside.bytes_per_second);
    speeds.sources.rank = Source::measured;
    if (limits.peers_memory) {
      links.memory = speeds.limits.memory.back().bytes_per_second;
      speeds.sources.memory = Source::measured;
      if (has_several_nodes(topology)) {
        measure_remote_memory(measurement, topology, speeds);
      }
    }
  }
  if (hosts.size() > 1) {
    measure_between(measurement, hosts, topology, speeds);
  }
  if (has_local_peers && limits.peers_memory) {
    links.barrier = rounded(measurement.barrier(mine));
  }
  keep_to_limits(speeds);
  return speeds;
}

}  // namespace cnn::allreduce
