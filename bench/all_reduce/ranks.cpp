#include "bench/all_reduce/ranks.h"

#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "allreduce/connection.h"
#include "allreduce/peer_memory.h"
#include "bench/run/exchange.h"
#include "bench/run/exchange_flags.h"
#include "bench/run/peers.h"
#include "bench/run/rank_thread.h"
#include "runtime/error.h"

namespace cnn::bench {

void run_as_process(const Config& config, allreduce::World& world, std::size_t room,
                    const std::function<Backend()>& make_backend, const RankWork& work) {
  const std::vector<allreduce::Seat> seats =
      allreduce::find_seats(world, config.comm.transport == CommTransport::mpi);
  share_processors(world, seats);
  const Backend backend = make_backend();
  allreduce::Connection connection(world, seats, peer_memory_options(config.comm, room));
  work({connection.transport(), loops_for(backend.instruction_sets), allreduce::topology_of(seats),
        &world});
}

void run_as_threads(const Config& config, const Backend& backend, std::size_t room,
                    const RankWork& work) {
  check(backend.for_rank != nullptr, "--num_gpus: this device cannot be divided; use --device=cpu");
  const int ranks = config.num_gpus;
  allreduce::PeerMemory memory =
      allreduce::PeerMemory::of_threads(ranks, peer_memory_options(config.comm, room));
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  threads.reserve(errors.size());
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const Backend part = backend.for_rank(config, rank, ranks);
        const std::unique_ptr<allreduce::Transport> transport = memory.join(rank);
        work({*transport, loops_for(part.instruction_sets), allreduce::ranks_on_hosts(1, ranks)});
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
