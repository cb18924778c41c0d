#pragma once

#include <vector>

#include "bench/machine/backend.h"

namespace cnn::bench {

// Adds the backend for GPUs that this build has, or nothing: bench/cuda and bench/no_cuda each have
// this function, and one of them is built.
void add_backend(std::vector<BackendKind>& kinds);

}  // namespace cnn::bench
