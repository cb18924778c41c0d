#pragma once

#include <string>
#include <utility>
#include <vector>

#include "allreduce/serialization.h"
#include "allreduce/world.h"

// Collectives that exchange values among the processes of a run. All processes call the same ones
// in the same order, with values of the same type. They throw PeerLost if a process is lost, and
// Error if one has sent something else.
namespace cnn::allreduce {

// Returns the value of each process, by rank.
template <class T>
std::vector<T> all_gather(World& world, const T& mine) {
  std::vector<T> all;
  for (const std::string& bytes : world.gather(to_bytes(mine))) {
    all.push_back(from_bytes<T>(bytes));
  }
  return all;
}

// Returns the value of process 0.
template <class T>
T from_first(World& world, const T& mine) {
  return from_bytes<T>(world.gather(world.rank() == 0 ? to_bytes(mine) : std::string()).front());
}

// Blocks until all processes have called it.
inline void barrier(World& world) { world.gather({}); }

}  // namespace cnn::allreduce
