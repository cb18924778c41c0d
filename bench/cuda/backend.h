#pragma once

#include "bench/machine/gpu_module.h"

namespace cnn::bench {

// The backend that the GPU module hands over.
const GpuBackend& cuda_backend();

}  // namespace cnn::bench
