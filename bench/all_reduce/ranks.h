#pragma once

#include <cstddef>
#include <functional>

#include "allreduce/algorithm.h"
#include "allreduce/simd/table.h"
#include "allreduce/transport.h"
#include "allreduce/world.h"
#include "bench/flags/config.h"
#include "bench/machine/backend.h"

namespace cnn::bench {

struct RankContext;
class RankExchange;

// The environment of the work of one rank.
struct RankEnvironment {
  allreduce::Transport& transport;
  const allreduce::simd::Loops& loops;
  allreduce::Topology topology;
  allreduce::World* world = nullptr;  // the processes that a launcher started; null: only this one
  // The context and the exchange of a device with its own memory; null for the CPU.
  const RankContext* device = nullptr;
  RankExchange* exchange = nullptr;
};
using RankWork = std::function<void(const RankEnvironment&)>;

// Runs the work as each of --num_gpus ranks, on threads of this process, which divide the
// processors or have a device each. segment_bytes: the shared memory of each rank. Rethrows the
// root cause if ranks fail, see rethrow_cause().
void run_as_threads(const Config& config, const Backend& backend, std::size_t segment_bytes,
                    const RankWork& work);

// Runs the work as the one rank of this process, on its share of the host's processors or on its
// own device. Exceptions of the work propagate.
void run_as_process(const Config& config, allreduce::World& world, std::size_t segment_bytes,
                    const std::function<Backend(const Config&)>& make_backend,
                    const RankWork& work);

}  // namespace cnn::bench
