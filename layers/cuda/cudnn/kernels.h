#pragma once

#include <memory>

#include "layers/cuda/cudnn/libraries.h"
#include "runtime/kernel.h"

namespace cnn::layers::cuda {

// Adds everything that runs on a CUDA device: the libraries' rows and our own kernels. An op that
// no row takes cannot run there. The table shares `libraries`.
void add_kernels(KernelTable& table, const std::shared_ptr<Libraries>& libraries);

// Those of them that a library runs.
void add_library_kernels(KernelTable& table, const std::shared_ptr<Libraries>& libraries);

// The layout of images within a network.
inline Layout preferred_layout(DataType /*type*/) { return Layout::nhwc; }

}  // namespace cnn::layers::cuda
