#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/shared_memory.h"
#include "allreduce/transport.h"
#include "allreduce/world.h"

namespace cnn::allreduce {

// The location of a process of a world.
struct RankPlacement {
  std::string host;    // the name of its host, for messages
  std::string kernel;  // equal for processes that share processors and memory
  std::string memory;  // equal for processes that can map the same memory
  int process = 0;     // its process id
  // The NUMA node of each rank of the process, -1 where it is unknown; empty: all are unknown.
  std::vector<int> nodes = {};

  static auto fields(auto& self) {
    return std::tie(self.host, self.kernel, self.memory, self.process, self.nodes);
  }
};

// All-gathers the placements of all processes; each calls it. apart: treats every process as if it
// had a host of its own, so that none sees another's memory.
std::vector<RankPlacement> gather_placements(World& world, bool apart);

// Returns the topology of all ranks. Hosts are numbered by the memory that their ranks share. each:
// the ranks of every process, which have consecutive numbers.
Topology topology_of(std::span<const RankPlacement> placements, int each = 1);

// The transports between a process's ranks and all others: shared memory to the ranks of the same
// host, messages of the world to the rest. Ranks are numbered process by process.
class Connection {
 public:
  // each: the ranks in every process, which are threads if there are several. All processes make
  // theirs at the same time. The world must outlive it. Throws PeerLost.
  Connection(World& world, std::span<const RankPlacement> placements,
             const SharedMemoryOptions& options, int each = 1);

  // Returns the transport of the one rank of this process.
  Transport& transport() { return *transport_; }
  // Returns the transport of rank `local_rank` of this process; its thread calls it, and all ranks
  // join at the same time. Error messages name a rank by its process. The connection must outlive
  // it.
  std::unique_ptr<Transport> join(int local_rank);

 private:
  World& world_;
  std::vector<int> local_peers_;  // processes that share memory, with this one, ascending
  int each_;
  std::unique_ptr<SharedMemory> memory_;  // null: no other rank is on this host
  std::unique_ptr<Transport> messages_;   // between processes; null: all share memory
  std::mutex mutex_;                      // of the ranks that wait for messages
  std::unique_ptr<Transport> transport_;  // declared last, as it lies in the memory
};

}  // namespace cnn::allreduce
