#include "allreduce/calibrate.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "allreduce/engine.h"
#include "allreduce/numbers.h"
#include "allreduce/writer.h"

namespace cnn::allreduce {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int probes = 9;        // that share the time
constexpr int most_runs = 50;    // of one of them
constexpr int at_once = 16;      // messages, or meetings one after another
constexpr std::size_t few = 16;  // elements of a small message

// Whom a rank sends to and receives from; -1: nobody.
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

// The ranks of each host, host after host.
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

// Who stands at the same place in each host as this rank; nobody, where one of them is too small.
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

// Small messages, and bytes per second of a large one.
struct MessageSpeed {
  double latency = 0, post = 0, bytes_per_second = 0;
};

class Measurement {
 public:
  Measurement(Transport& transport, const simd::Loops& loops, const Topology& topology,
              const CalibrationLimits& limits)
      : transport_(transport),
        loops_(loops),
        topology_(topology),
        share_(limits.seconds / probes),
        numbers_(transport, loops, topology, 1) {
    const Bytes room = transport.room(limits.bytes);
    room_ = {reinterpret_cast<float*>(room.data()), limits.bytes / sizeof(float)};
    std::ranges::fill(room_, 1.0F);  // else pages of zeros are one and the same
  }

  MessageSpeed messages(const Neighbours& with) {
    constexpr std::size_t first = 16384, steps = 8;  // elements of larger and larger ones
    const double one = least(message_plan(with, 1, few));
    const double many = least(message_plan(with, at_once, few));
    const double post = std::max(0.0, (many - one) / (2 * (at_once - 1)));
    std::size_t elements = std::min(first, room_.size());
    double large = least(message_plan(with, 1, elements));
    while (elements * steps <= room_.size() && steps * large < share_) {
      elements *= steps;
      large = least(message_plan(with, 1, elements));
    }
    const double bytes = static_cast<double>(elements * sizeof(float));
    return {std::max(shortest, one - 2 * post), post, bytes / std::max(shortest, large - one)};
  }

  double meeting() {
    const Options options;  // which the writer refers to
    Writer writer(options);
    const Group all = everyone(topology_, transport_.rank());
    writer.begin_chunk();
    for (int i = 0; i < at_once; ++i) {
      writer.meet(all.ranks);
    }
    return std::max(shortest, least(std::move(writer).finish()) / at_once);
  }

  // Bytes that a rank reads and writes in a second in sums over the memory of all.
  double memory(double meeting) {
    const double seconds =
        least(make_plan(find("shared"), topology_, transport_.rank(), room_.size(), {}));
    return 2 * static_cast<double>(room_.size_bytes()) / std::max(shortest, seconds - 2 * meeting);
  }

  // Seconds for each byte that is added to another.
  double add() {
    const std::size_t n = room_.size() / 2;
    const std::array<simd::Operand, 2> operands{{{room_.data()}, {&room_[n]}}};
    float* const to = room_.data();
    const simd::Sum sum{operands.data(), operands.size(), &to, 1, n, false, 0.5F};
    return least([&] { loops_.sum(sum); }) / static_cast<double>(n * sizeof(float));
  }

 private:
  static constexpr double shortest = 1e-9;

  RankPlan message_plan(const Neighbours& with, int messages, std::size_t elements) const {
    const Options options{.chunks = messages, .window = messages};
    Writer writer(options);
    for (int i = 0; i < messages; ++i) {
      writer.begin_chunk();
      if (with.to >= 0) {
        writer.send(with.to, {0, elements});
        writer.receive_beside(with.from, {0, elements});
        writer.wait();
      }
    }
    return std::move(writer).finish();
  }

  double least(RankPlan plan) {
    Engine engine(transport_, loops_, std::move(plan), {&room_, 1});
    const float mean = 1 / static_cast<float>(topology_.ranks());
    return least([&] { engine.run(mean); });
  }

  // The least time of several runs, each that of the slowest rank: so all ranks know the same.
  template <class Run>
  double least(const Run& run) {
    double best = timed(run);
    const double affordable = std::clamp(share_ / best, 1.0, static_cast<double>(most_runs));
    for (int i = 0; i < static_cast<int>(affordable); ++i) {
      best = std::min(best, timed(run));
    }
    return best;
  }
  template <class Run>
  double timed(const Run& run) {
    numbers_.meet();
    const Clock::time_point start = Clock::now();
    run();
    const double mine = std::chrono::duration<double>(Clock::now() - start).count();
    return std::max(shortest, std::ranges::max(numbers_.gather({&mine, 1})));
  }

  Transport& transport_;
  const simd::Loops& loops_;
  const Topology& topology_;
  double share_;  // of the time
  Numbers numbers_;
  std::span<float> room_;
};

// A few steps for each power of two.
double rounded(double value) {
  constexpr double steps = 4;
  return value > 0 ? std::exp2(std::round(std::log2(value) * steps) / steps) : 0;
}

}  // namespace

Links measure_links(Transport& transport, const simd::Loops& loops, const Topology& topology,
                    const Links& assumed, const CalibrationLimits& limits) {
  Links links = assumed;
  if (topology.ranks() < 2) {
    return links;
  }
  Measurement measurement(transport, loops, topology, limits);
  const std::vector<std::vector<int>> hosts = by_host(topology);
  const int rank = transport.rank();
  const std::vector<int> mine =
      ranks_of(topology, topology.host_of[static_cast<std::size_t>(rank)]);
  links.add = rounded(measurement.add());
  if (std::ranges::any_of(hosts, [](const auto& ranks) { return ranks.size() > 1; })) {
    const MessageSpeed inside = measurement.messages(in_ring(mine, rank));
    links.latency = rounded(inside.latency);
    links.post = rounded(inside.post);
    links.rank = rounded(inside.bytes_per_second);
  }
  if (hosts.size() > 1) {
    const std::vector<int> peers = across(hosts, rank);
    const MessageSpeed outside = measurement.messages(in_ring(peers, rank));
    links.latency = rounded(outside.latency);
    links.post = rounded(outside.post);
    links.host = rounded(outside.bytes_per_second * static_cast<double>(smallest(hosts)));
  } else if (limits.peers_memory) {
    const double meeting = measurement.meeting();
    links.meeting = rounded(meeting);
    // A copy is a read and a write and has its sum still to come: what says that sums in place are
    // slower was disturbed.
    links.memory = std::max(rounded(measurement.memory(meeting)), 3 * links.rank);
  }
  return links;
}

Links links_of_first(Transport& transport, const simd::Loops& loops, const Topology& topology,
                     const Links& mine) {
  Numbers numbers(transport, loops, topology, 7);
  const std::array<double, 7> values{mine.latency,
                                     mine.post,
                                     mine.add,
                                     mine.rank,
                                     mine.host,
                                     mine.memory,
                                     mine.meeting.value_or(-1)};
  const std::span<const double> first = numbers.gather(values);
  Links links{.latency = first[0],
              .post = first[1],
              .add = first[2],
              .rank = first[3],
              .host = first[4],
              .memory = first[5]};
  if (first[6] >= 0) {
    links.meeting = first[6];
  }
  return links;
}

}  // namespace cnn::allreduce
