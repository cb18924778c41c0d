#include "bench/ranks/rank_exchange.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fmt/format.h>

#include "bench/ranks/device_exchange.h"
#include "bench/ranks/exchange.h"
#include "bench/ranks/exchange_choice.h"
#include "bench/ranks/rank_context.h"
#include "bench/ranks/rank_lanes.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

// Returns whether our plans reduce, not a library.
bool is_by_plans(const Config& config) {
  const CommBackend backend = config.comm.backend;
  return backend == CommBackend::own ||
         (backend == CommBackend::automatic &&
          (config.device == DeviceKind::cpu || !wants_nccl(config.comm)));
}

Exchange rules_for(allreduce::Transport& transport, const allreduce::Topology& topology,
                   const Config& config, std::string_view instruction_sets) {
  if (!exchanges_gradients(config) || !is_by_plans(config)) {
    return make_exchange(config, topology, /*peers_memory=*/true);
  }
  Exchange rules = possible_exchange(config, topology, /*peers_memory=*/true, /*elements=*/0);
  calibrate(config.comm, rules.settings, transport, loops_for(instruction_sets));
  return rules;
}

// Returns the CPU time of this thread, in seconds.
double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

std::size_t segment_bytes_of(const MemoryLimits& memory) {
  constexpr std::size_t beside = std::size_t{64} << 20U;
  return memory.device + beside;
}

RankExchange::RankExchange(allreduce::Transport& transport, const allreduce::Topology& topology,
                           const Config& config, std::string_view instruction_sets)
    : transport_(transport),
      rules_(rules_for(transport, topology, config, instruction_sets)),
      buckets_(transport, loops_for(instruction_sets), rules_.settings),
      flags_(config.comm) {}

void RankExchange::check_buckets(const Config& config, const StepPlan& plan) const {
  if (exchanges_gradients(config) && is_by_plans(config)) {
    possible_exchange(config, rules_.settings.topology, /*peers_memory=*/true,
                      largest_bucket(plan));
  }
}

void RankExchange::all_reduce(std::size_t bucket, std::span<const std::span<float>> pieces,
                              float factor) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = thread_seconds();
  world_ == nullptr ? buckets_.all_reduce(bucket, pieces, factor)
                    : reduce_by_world(bucket, pieces, factor);
  const auto end = std::chrono::steady_clock::now();
  seconds_ += in_seconds(end - start);
  if (keeps_) {
    reductions_.push_back({bucket, seconds_of(start), seconds_of(end)});
  }
  cpu_seconds_ += thread_seconds() - cpu_start;
}

// MPI takes a contiguous buffer.
void RankExchange::reduce_by_world(std::size_t bucket, std::span<const std::span<float>> pieces,
                                   float factor) {
  joined_.clear();
  for (const std::span<float>& piece : pieces) {
    joined_.insert(joined_.end(), piece.begin(), piece.end());
  }
  try {
    world_->polled_all_reduce(joined_);
  } catch (const allreduce::PeerLost& lost) {
    const allreduce::Progress* const progress = transport_.progress();
    const allreduce::ExchangePosition position{
        .progress = progress == nullptr ? 0 : progress->load(),
        .bucket = bucket,
        .phase = "MPI_Allreduce"};
    throw allreduce::PeerLost(
        lost.rank(), fmt::format("{} | in {}", lost.what(), allreduce::position_text(position)),
        lost.source(), lost.where());
  }
  const float* from = joined_.data();
  for (const std::span<float>& piece : pieces) {
    std::ranges::transform(std::span(from, piece.size()), piece.begin(),
                           [factor](float sum) { return sum * factor; });
    from += piece.size();
  }
}

RankContext RankExchange::serve(RankContext context) {
  context.progress = transport_.progress();
  if (context.backend.device_exchange != nullptr) {
    ChosenExchange exchange = exchange_on_device(std::move(context), flags_, transport_, *this,
                                                 [] { return allreduce::nccl::open_library(); });
    timed_ = exchange.by_host;
    on_device_ = exchange.communicator;
    if (exchange.by_host) {
      rules_.notes.insert(rules_.notes.begin(), exchange.text);
    } else {
      rules_.by_device = exchange.text;
      rules_.notes.clear();  // they tell what the flags mean to the host, which sums nothing
    }
    return std::move(exchange.context);
  }
  check(flags_.backend != CommBackend::nccl,
        "--comm_backend=nccl sums what GPUs have computed; with --device=cpu use ring");
  context.backend.add_exchange(context.kernels, *this);
  context.shared_memory = [this](std::size_t bytes) {
    const allreduce::Bytes room = transport_.allocate_shared(bytes);
    return Buffer(room.data(), room.size(), [](std::byte*) {});  // the transport owns it
  };
  return context;
}

}  // namespace cnn::bench
