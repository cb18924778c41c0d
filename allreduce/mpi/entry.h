#pragma once

#include "allreduce/world.h"

namespace cnn::allreduce {

// Returns the entry point that the MPI module exports.
const WorldEntry& mpi_entry();

}  // namespace cnn::allreduce
