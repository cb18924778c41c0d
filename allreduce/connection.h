#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/peer_memory.h"
#include "allreduce/transport.h"
#include "allreduce/world.h"

namespace cnn::allreduce {

// Where a rank of a world runs.
struct Seat {
  std::string host;    // its name, for people
  std::string kernel;  // equal for those that share processors and memory
  std::string memory;  // equal for those that can map the same memory
  int process = 0;
  // The NUMA node of each of its ranks, -1: unknown. Empty: of none of them.
  std::vector<int> nodes = {};
};

// Finds the seats of all ranks; each calls it. apart: no rank is to see another's memory, as if
// each had a host of its own.
std::vector<Seat> find_seats(World& world, bool apart);

// Hosts are numbered by the memory that their ranks share; NUMA nodes are those of the seats. each:
// ranks of a seat, one after another.
Topology topology_of(std::span<const Seat> seats, int each = 1);

// The ways of a process's ranks to all others: through memory to those they share memory with, by
// messages of the world to the rest. Ranks are numbered process after process.
class Connection {
 public:
  // each: ranks in every process; of several each is a thread. All processes connect at the same
  // time. The world must outlive it. Throws PeerLost.
  Connection(World& world, std::span<const Seat> seats, const PeerMemoryOptions& options,
             int each = 1);

  // Returns the transport of the one rank of this process.
  Transport& transport() { return *transport_; }
  // Returns the transport of the rank with number `place`, on its thread; all ranks join at the
  // same time. Messages call a rank by its process. The connection must outlive it.
  std::unique_ptr<Transport> join(int place);

 private:
  World& world_;
  std::vector<int> mates_;  // processes that share memory, this one too, ascending
  int each_;
  std::unique_ptr<PeerMemory> memory_;    // null: nobody shares it
  std::unique_ptr<Transport> messages_;   // of processes; null: all share memory
  std::mutex turn_;                       // of threads that wait for messages
  std::unique_ptr<Transport> transport_;  // last: it lies in the memory
};

}  // namespace cnn::allreduce
