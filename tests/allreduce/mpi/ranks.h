#pragma once

#include <chrono>
#include <cstdlib>
#include <memory>

#include "allreduce/mpi/entry.h"
#include "allreduce/world.h"

namespace cnn::tests {

// The folder that ranks share which are to be as if each were on a host of its own, for the one
// test that wants it; null in every other run.
inline const char* unwatched_in() { return std::getenv("CNN_TEST_UNWATCHED_IN"); }
inline bool is_unwatched() { return unwatched_in() != nullptr; }

// The folder of a run whose ranks give up, for the tests that want it; null in every other run.
inline const char* giving_up_in() { return std::getenv("CNN_TEST_GIVING_UP_IN"); }

// That of the mpirun which has started this test.
inline allreduce::World& this_world() {
  static const std::unique_ptr<allreduce::World> world = allreduce::mpi_entry().open(
      {.patience = std::chrono::seconds(giving_up_in() != nullptr ? 1 : 30),
       .silence = std::chrono::seconds(4),
       .watches_processes = !is_unwatched()});
  return *world;
}

}  // namespace cnn::tests
