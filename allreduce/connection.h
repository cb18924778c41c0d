#pragma once

#include <cstddef>
#include <memory>
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
};

// Of all ranks; each calls it. apart: no rank is to see another's memory, as if each had a host of
// its own.
std::vector<Seat> find_seats(World& world, bool apart);

// Hosts are numbered by the memory that their ranks share.
Topology topology_of(std::span<const Seat> seats);

// One rank's way to all others: through memory to those it shares memory with, by messages of the
// world to the rest.
class Connection {
 public:
  // All ranks connect at the same time. The world must outlive it. Throws PeerLost.
  Connection(World& world, std::span<const Seat> seats, const PeerMemoryOptions& options);

  Transport& transport() { return *transport_; }

 private:
  std::unique_ptr<PeerMemory> memory_;
  std::unique_ptr<Transport> transport_;  // last: it lies in the memory
};

}  // namespace cnn::allreduce
