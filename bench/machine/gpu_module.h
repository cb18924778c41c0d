#pragma once

#include <string>
#include <vector>

#include "bench/machine/backend.h"

namespace cnn::bench {

// The functions of the GPU module; BackendKind documents them. The GPU backend is a shared library
// beside the program (cnn_gpu.so), or linked into a portable build: runs without a GPU load nothing
// of CUDA. A build without CUDA has no such file.
struct GpuBackend {
  std::string (*missing)() = nullptr;  // returns why there is no device; empty if there is one
  Backend (*make)(const Config& config) = nullptr;
  Backend (*describe)(const Config& config, const MachineModel& model) = nullptr;
};
// The name of the module's only exported function.
inline constexpr const char* gpu_entry_name = "cnn_gpu_backend";
using GpuEntry = const GpuBackend* (*)();

// Returns the kind for GPUs, or nothing if this build has none. Does not open the module.
std::vector<BackendKind> gpu_backends();

}  // namespace cnn::bench
