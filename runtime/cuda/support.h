#pragma once

#include <cuda_runtime_api.h>
#include <span>
#include <string>

// The supported CUDA drivers and compute capabilities, and the messages to users about unsupported
// ones. Versions are CUDA's numbers, 1000 x major + 10 x minor; architectures are 100 x major +
// 10 x minor of a compute capability. Needs no device.
namespace cnn::cuda {

// Returns a version as text: "12.2" for 12020.
std::string version_text(int version);

// Returns the message that explains why there is no device. status: the result of
// cudaGetDeviceCount(). driver: the highest version that the driver supports, 0 without a driver.
std::string why_no_device(cudaError_t status, int driver, int runtime);

// Returns one sentence if this program does not support the compute capability, else an empty text.
std::string why_unsupported(const std::string& device, int major, int minor);

// Returns one sentence if nothing of this program runs on the compute capability, because machine
// code and PTX are of newer ones, else an empty text. built_for: as below.
std::string why_not_built_for(int major, int minor, std::span<const int> built_for);

// Returns a note for the user if the driver must compile our kernels from PTX, because the program
// has no machine code for the compute capability, else an empty text. built_for: the architectures
// of the program's machine code and PTX.
std::string compilation_note(int major, int minor, std::span<const int> built_for);

// Returns the architectures that the kernels of this program were compiled for.
std::span<const int> built_architectures();

}  // namespace cnn::cuda
