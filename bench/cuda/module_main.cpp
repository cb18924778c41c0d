#include "bench/cuda/backend.h"

// A name without C++'s decoration, which the program looks up; see gpu_entry_name.
extern "C" const cnn::bench::GpuBackend* cnn_gpu_backend() { return &cnn::bench::cuda_backend(); }
