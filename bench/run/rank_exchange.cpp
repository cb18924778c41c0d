#include "bench/run/rank_exchange.h"

#include <algorithm>
#include <chrono>

#include "allreduce/simd/table.h"
#include "bench/machine/backend.h"

namespace cnn::bench {
namespace {

const allreduce::simd::Loops& loops_for(std::string_view instruction_sets) {
  const auto has = [&](std::string_view set) {
    return instruction_sets.find(set) != std::string_view::npos;
  };
  return has("avx512") ? allreduce::simd::avx512_loops()
         : has("avx2") ? allreduce::simd::avx2_loops()
                       : allreduce::simd::plain_loops();
}

// Messages within a host are copies; sums over the memory of all have none. Between hosts as over
// 10 Gbit/s.
allreduce::Settings settings_of(const allreduce::Topology& topology) {
  const bool one_host = std::ranges::all_of(
      topology.host_of, [&](int host) { return host == topology.host_of.front(); });
  allreduce::Links links{.latency = 5e-7, .rank = 4e9, .memory = 20e9};
  if (!one_host) {
    links.latency = 2e-5;
    links.host = 1.2e9;
  }
  return {.topology = topology, .links = links};
}

}  // namespace

RankExchange::RankExchange(allreduce::Transport& transport, const allreduce::Topology& topology,
                           std::string_view instruction_sets)
    : transport_(transport),
      buckets_(transport, loops_for(instruction_sets), settings_of(topology)) {}

void RankExchange::all_reduce(std::size_t bucket, std::span<const std::span<float>> pieces,
                              float factor) {
  const auto start = std::chrono::steady_clock::now();
  world_ == nullptr ? buckets_.all_reduce(bucket, pieces, factor) : reduce_by_world(pieces, factor);
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// MPI takes one row of numbers.
void RankExchange::reduce_by_world(std::span<const std::span<float>> pieces, float factor) {
  joined_.clear();
  for (const std::span<float>& piece : pieces) {
    joined_.insert(joined_.end(), piece.begin(), piece.end());
  }
  world_->watchful_all_reduce(joined_);
  const float* from = joined_.data();
  for (const std::span<float>& piece : pieces) {
    std::ranges::transform(std::span(from, piece.size()), piece.begin(),
                           [factor](float sum) { return sum * factor; });
    from += piece.size();
  }
}

void RankExchange::serve(Backend& backend) {
  backend.add_exchange(backend.kernels, *this);
  backend.shared_memory = [this](std::size_t bytes) {
    const allreduce::Bytes room = transport_.room(bytes);
    return Buffer(room.data(), room.size(), [](std::byte*) {});  // goes with the transport
  };
}

}  // namespace cnn::bench
