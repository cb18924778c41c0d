#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "allreduce/world.h"

namespace cnn::bench {

// The run that a launcher such as mpirun has started this process for, as its environment tells.
struct Launched {
  std::string_view by;       // "mpirun"
  int rank = 0;              // of this process
  std::optional<int> ranks;  // nothing: the environment does not say how many there are
};
// Nothing: the process was started alone.
std::optional<Launched> launched();

// The processes of the run, by the module cnn_mpi.so beside the program, which alone knows MPI; a
// build without MPI has no such file. Throws Error where it is missing, or where MPI does not know
// of the launcher.
std::unique_ptr<allreduce::World> open_world(const Launched& by,
                                             const allreduce::WorldOptions& options);

}  // namespace cnn::bench
