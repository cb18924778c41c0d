#pragma once

#include <cuda_runtime_api.h>
#include <span>
#include <string>

// Which drivers and devices this program can use, and what it says about them. Versions are CUDA's
// numbers, 1000 x major + 10 x minor; architectures are 100 x major + 10 x minor of a compute
// capability. Needs no device.
namespace cnn::cuda {

std::string version_text(int version);  // 12020 -> "12.2"

// Why there is no device, by what the runtime said when it looked for one. driver: the highest
// version that the driver takes, 0 without one.
std::string why_no_device(cudaError_t status, int driver, int runtime);

// One sentence if no kernel of this program runs on a device of that compute capability, else
// empty.
std::string why_unsupported(const std::string& device, int major, int minor);

// Returns a note for the user where the driver compiles our kernels for the device because the
// program has none for it; empty if it has. built_for: architectures, real ones and PTX.
std::string compilation_note(int major, int minor, std::span<const int> built_for);

// For which architectures the kernels of this program were compiled.
std::span<const int> built_architectures();

}  // namespace cnn::cuda
