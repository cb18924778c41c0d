#pragma once

#include <string>
#include <vector>

#include "bench/machine/backend.h"

namespace cnn::bench {

// The backend for GPUs is a shared library beside the program (cnn_gpu.so), or a part of it in a
// portable build: runs that use no GPU map nothing of CUDA. A build without CUDA has no such file.
// The functions that the module gives to the program; see BackendKind for what the functions
// promise.
struct GpuBackend {
  std::string (*missing)() = nullptr;  // why there is no device; empty if there is one
  Backend (*make)(const Config& config) = nullptr;
  Backend (*describe)(const Config& config, const MachineModel& model) = nullptr;
};
// The one function of the module that is looked up by name.
inline constexpr const char* gpu_entry_name = "cnn_gpu_backend";
using GpuEntry = const GpuBackend* (*)();

// The kind for GPUs, or nothing if this build has none. Opens nothing yet.
std::vector<BackendKind> gpu_backends();

}  // namespace cnn::bench
