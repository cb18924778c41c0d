#pragma once

#include <memory>

#include "layers/cuda/cudnn/libraries.h"
#include "runtime/kernel.h"

namespace cnn::layers::cuda {

// Adds the rows of all kernels for CUDA devices: the libraries' and our own. An op that no row
// takes cannot run there. The table shares ownership of `libraries`.
void add_kernels(KernelTable& table, const std::shared_ptr<Libraries>& libraries);

// Adds only the rows whose kernels are a library's.
void add_library_kernels(KernelTable& table, const std::shared_ptr<Libraries>& libraries);

// Returns the layout of images inside a network on CUDA devices.
inline Layout preferred_layout(DataType /*type*/) { return Layout::nhwc; }

}  // namespace cnn::layers::cuda
