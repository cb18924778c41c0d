#pragma once

#include "bench/machine/gpu_module.h"

namespace cnn::bench {

// Returns the functions of the GPU backend, which the GPU module exports.
const GpuBackend& cuda_backend();

}  // namespace cnn::bench
