#pragma once

#include "allreduce/world.h"

namespace cnn::allreduce {

// The entry that the MPI module hands over.
const WorldEntry& mpi_entry();

}  // namespace cnn::allreduce
