#include "bench/cuda/backend.h"

// The program looks up this name, so the name has C linkage; see gpu_entry_name.
extern "C" const cnn::bench::GpuBackend* cnn_gpu_backend() { return &cnn::bench::cuda_backend(); }
