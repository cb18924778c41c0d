#pragma once

#include <string>
#include <utility>
#include <vector>

#include "allreduce/world.h"
#include "bench/ranks/serialization.h"

// The collectives by which the processes of a run tell one another values. All processes call the
// same ones in the same order, with values of the same type. They throw PeerLost where a process is
// lost, and Error where one has sent something else.
namespace cnn::bench {

// Returns the value of each process, by rank.
template <class T>
std::vector<T> all_gather(allreduce::World& world, const T& mine) {
  std::vector<T> all;
  for (const std::string& bytes : world.gather(to_bytes(mine))) {
    all.push_back(from_bytes<T>(bytes));
  }
  return all;
}

// Returns the value of process 0.
template <class T>
T from_first(allreduce::World& world, const T& mine) {
  return from_bytes<T>(world.gather(world.rank() == 0 ? to_bytes(mine) : std::string()).front());
}

// Returns when all processes have called it.
inline void barrier(allreduce::World& world) { world.gather({}); }

}  // namespace cnn::bench
