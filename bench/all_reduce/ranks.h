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

// One rank, as its work sees it.
struct RankEnvironment {
  allreduce::Transport& transport;
  const allreduce::simd::Loops& loops;
  allreduce::Topology topology;
  allreduce::World* world = nullptr;  // of processes that a launcher has started
  // Where buffers lie on a device with memory of its own, and how it exchanges them; else null.
  const RankContext* device = nullptr;
  RankExchange* exchange = nullptr;
};
using RankWork = std::function<void(const RankEnvironment&)>;

// Does it as each of --num_gpus ranks on a thread of this process, each on its part of the
// processors, or on a device of its own. segment_bytes: of its shared memory. Throws what
// the first rank threw that failed by itself.
void run_as_threads(const Config& config, const Backend& backend, std::size_t segment_bytes,
                    const RankWork& work);

// Does it as the rank that this process is, on its part of the processors that it shares with
// others, or on its own of the host's devices. Throws what the work throws.
void run_as_process(const Config& config, allreduce::World& world, std::size_t segment_bytes,
                    const std::function<Backend(const Config&)>& make_backend,
                    const RankWork& work);

}  // namespace cnn::bench
