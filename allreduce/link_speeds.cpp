// The broadcast of link speeds.
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "allreduce/calibrate.h"
#include "allreduce/repeated_all_gather.h"

namespace cnn::allreduce {
namespace {

// Speeds are serialised as numbers, whose count depends on the number of ranks alone.
constexpr std::size_t max_memory_sizes = 40;  // powers of two
constexpr double absent = -1;

std::vector<double> numbers_of(const LinkSpeeds& speeds, std::size_t ranks) {
  const Links& links = speeds.links;
  const Limits& limits = speeds.limits;
  std::vector<double> numbers{links.latency,
                              links.post,
                              links.add,
                              links.rank,
                              links.host,
                              links.memory,
                              links.barrier.value_or(absent),
                              links.remote_memory.value_or(absent),
                              static_cast<double>(speeds.sources.rank),
                              static_cast<double>(speeds.sources.host),
                              static_cast<double>(speeds.sources.memory),
                              static_cast<double>(speeds.sources.remote_memory),
                              limits.line,
                              static_cast<double>(limits.line_source),
                              limits.hop};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    numbers.push_back(speeds.of_rank.empty() ? 1 : speeds.of_rank[rank]);
    numbers.push_back(limits.host_of.empty() ? absent : limits.host_of[rank]);
  }
  for (std::size_t i = 0; i < max_memory_sizes; ++i) {
    const bool known = i < limits.memory.size();
    numbers.push_back(known ? limits.memory[i].bytes : absent);
    numbers.push_back(known ? limits.memory[i].bytes_per_second : absent);
  }
  return numbers;
}

// The inverse of numbers_of().
LinkSpeeds speeds_of(std::span<const double> numbers, std::size_t ranks) {
  auto next = numbers.begin();
  const auto source = [&] { return static_cast<Source>(static_cast<int>(*next++)); };
  LinkSpeeds speeds;
  for (double* const value : {&speeds.links.latency, &speeds.links.post, &speeds.links.add,
                              &speeds.links.rank, &speeds.links.host, &speeds.links.memory}) {
    *value = *next++;
  }
  if (const double barrier = *next++; barrier != absent) {
    speeds.links.barrier = barrier;
  }
  if (const double remote = *next++; remote != absent) {
    speeds.links.remote_memory = remote;
  }
  speeds.sources.rank = source();
  speeds.sources.host = source();
  speeds.sources.memory = source();
  speeds.sources.remote_memory = source();
  speeds.limits.line = *next++;
  speeds.limits.line_source = source();
  speeds.limits.hop = *next++;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    speeds.of_rank.push_back(*next++);
    speeds.limits.host_of.push_back(static_cast<int>(*next++));
  }
  if (std::ranges::min(speeds.of_rank) >= 1) {
    speeds.of_rank.clear();
  }
  std::erase(speeds.limits.host_of, static_cast<int>(absent));
  for (std::size_t i = 0; i < max_memory_sizes; ++i) {
    const MemorySpeed speed{next[0], next[1]};
    next += 2;
    if (speed.bytes != absent) {
      speeds.limits.memory.push_back(speed);
    }
  }
  return speeds;
}

}  // namespace

LinkSpeeds links_of_rank_0(Transport& transport, const Topology& topology, const LinkSpeeds& mine) {
  // All numbers in one message, since each message is a whole broadcast.
  std::vector<double> numbers = numbers_of(mine, topology.host_of.size());
  const std::span all(numbers);
  Broadcast(transport, all.size_bytes()).run(std::as_writable_bytes(all));
  return speeds_of(numbers, topology.host_of.size());
}

}  // namespace cnn::allreduce
