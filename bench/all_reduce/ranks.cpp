#include "bench/all_reduce/ranks.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "allreduce/connection.h"
#include "allreduce/shared_memory.h"
#include "bench/ranks/exchange.h"
#include "bench/ranks/exchange_flags.h"
#include "bench/ranks/peers.h"
#include "bench/ranks/rank_context.h"
#include "bench/ranks/rank_exchange.h"
#include "bench/ranks/rank_nodes.h"
#include "bench/ranks/rank_thread.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

void do_work(const Config& config, RankEnvironment environment, const Backend& backend,
             const RankWork& work) {
  if (backend.device_exchange == nullptr) {
    work(environment);
    return;
  }
  RankExchange exchange(environment.transport, environment.topology, config,
                        backend.instruction_sets);
  const RankContext context = exchange.serve({.backend = backend,
                                              .rank = environment.transport.rank(),
                                              .ranks = environment.transport.ranks(),
                                              .memory = backend.memory,
                                              .kernels = backend.kernels});
  environment.device = &context;
  environment.exchange = &exchange;
  work(environment);
}

// Returns how many earlier ranks share this rank's processors, and so its devices.
int local_rank(std::span<const allreduce::RankPlacement> placements, int rank) {
  const std::string& kernel = placements[static_cast<std::size_t>(rank)].kernel;
  return static_cast<int>(std::ranges::count(placements.first(static_cast<std::size_t>(rank)),
                                             kernel, &allreduce::RankPlacement::kernel));
}

}  // namespace

void run_as_process(const Config& config, allreduce::World& world, std::size_t segment_bytes,
                    const std::function<Backend(const Config&)>& make_backend,
                    const RankWork& work) {
  std::vector<allreduce::RankPlacement> placements =
      allreduce::gather_placements(world, config.comm.transport == CommTransport::mpi);
  share_processors(world, placements);
  gather_numa_nodes(world, placements, /*each=*/1);
  Config placed = config;
  placed.gpu.ordinal = local_rank(placements, world.rank());
  allreduce::Connection connection(world, placements,
                                   shared_memory_options(config.comm, segment_bytes));
  const Backend backend = make_backend(placed);
  do_work(config,
          {connection.transport(), loops_for(backend.instruction_sets),
           with_numa_nodes(allreduce::topology_of(placements), config.comm), &world},
          backend, work);
}

void run_as_threads(const Config& config, const Backend& backend, std::size_t segment_bytes,
                    const RankWork& work) {
  check(backend.for_rank != nullptr, "--num_gpus: this device cannot be divided; use --device=cpu");
  const int ranks = config.num_gpus;
  allreduce::SharedMemory memory = allreduce::SharedMemory::for_threads(
      ranks, shared_memory_options(config.comm, segment_bytes));
  const allreduce::Topology topology = topology_of_threads(config);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  threads.reserve(errors.size());
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Config placed = config;
        placed.gpu.ordinal = rank;
        const std::unique_ptr<allreduce::Transport> transport = memory.join(rank);
        const Backend part = backend.for_rank(placed, rank, ranks);
        do_work(config, {*transport, loops_for(part.instruction_sets), topology}, part, work);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  rethrow_cause(errors);
}

}  // namespace cnn::bench
