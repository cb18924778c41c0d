#include "bench/run/rank_exchange.h"

#include <algorithm>
#include <chrono>

#include "bench/machine/backend.h"
#include "bench/run/exchange.h"

namespace cnn::bench {
namespace {

Exchange rules_for(allreduce::Transport& transport, const allreduce::Topology& topology,
                   const Config& config, std::string_view instruction_sets) {
  Exchange rules = make_exchange(config, topology, /*peers_memory=*/true);
  if (exchanges_gradients(config) && config.comm.backend == CommBackend::own) {
    rules.settings.links =
        calibrated_links(config.comm, rules.settings, transport, loops_for(instruction_sets));
  }
  return rules;
}

}  // namespace

RankExchange::RankExchange(allreduce::Transport& transport, const allreduce::Topology& topology,
                           const Config& config, std::string_view instruction_sets)
    : transport_(transport),
      rules_(rules_for(transport, topology, config, instruction_sets)),
      buckets_(transport, loops_for(instruction_sets), rules_.settings) {}

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
