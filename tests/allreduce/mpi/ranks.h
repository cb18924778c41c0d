#pragma once

#include <chrono>
#include <cstdlib>
#include <memory>

#include "allreduce/mpi/entry.h"
#include "allreduce/world.h"

namespace cnn::tests {

// Returns the shared folder of a run that treats each rank as if it were on a host of its own, or
// null in every other run. Only one test needs such a run.
inline const char* unwatched_in() { return std::getenv("CNN_TEST_UNWATCHED_IN"); }
inline bool is_unwatched() { return unwatched_in() != nullptr; }

// Returns the shared folder of a run whose ranks abort, for the tests that need one; null in every
// other run.
inline const char* aborting_in() { return std::getenv("CNN_TEST_ABORTING_IN"); }

// Returns the world of the mpirun that started this test.
inline allreduce::World& this_world() {
  static const std::unique_ptr<allreduce::World> world = allreduce::mpi_entry().open(
      {.wait_timeout = std::chrono::seconds(aborting_in() != nullptr ? 1 : 30),
       .heartbeat_timeout = std::chrono::seconds(4),
       .watches_processes = !is_unwatched()});
  return *world;
}

}  // namespace cnn::tests
