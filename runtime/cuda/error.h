#pragma once

#include <cuda_runtime_api.h>
#include <source_location>
#include <string>

#include "runtime/error.h"

namespace cnn::cuda {

using cnn::check;

// Returns the name and text of a status: "cudaErrorNoDevice: no CUDA-capable device is detected".
std::string text_of(cudaError_t status);

// Throws Error with the name and the text of the status unless it is cudaSuccess.
void check(cudaError_t status, std::source_location at = std::source_location::current());

}  // namespace cnn::cuda
