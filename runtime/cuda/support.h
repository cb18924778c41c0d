#pragma once

#include <cuda_runtime_api.h>
#include <span>
#include <string>

// Tells which drivers and devices this program supports, and the messages about them. Versions are
// CUDA's numbers, 1000 x major + 10 x minor; architectures are 100 x major + 10 x minor of a
// compute capability. Needs no device.
namespace cnn::cuda {

std::string version_text(int version);  // 12020 -> "12.2"

// Returns why there is no device. status: the runtime's answer to the search for devices. driver:
// the highest version that the driver supports, 0 without a driver.
std::string why_no_device(cudaError_t status, int driver, int runtime);

// Returns one sentence if no kernel of this program runs on a device of that compute capability,
// else nothing.
std::string why_unsupported(const std::string& device, int major, int minor);

// Returns a note for the user if the driver must compile our kernels for the device because the
// program contains none for it, else nothing. built_for: architectures, real ones and PTX.
std::string compilation_note(int major, int minor, std::span<const int> built_for);

// Returns the architectures that the kernels of this program were compiled for.
std::span<const int> built_architectures();

}  // namespace cnn::cuda
