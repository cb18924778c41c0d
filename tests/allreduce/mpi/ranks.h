#pragma once

#include <chrono>
#include <memory>

#include "allreduce/mpi/entry.h"
#include "allreduce/world.h"

namespace cnn::tests {

// That of the mpirun which has started this test.
inline allreduce::World& this_world() {
  static const std::unique_ptr<allreduce::World> world =
      allreduce::mpi_entry().open(std::chrono::seconds(30));
  return *world;
}

}  // namespace cnn::tests
