#pragma once

#include <memory>

#include "layers/cuda/cudnn/libraries.h"
#include "runtime/kernel.h"

// Registration of the kernels that run a library's engine; kernels.cpp lists these functions.
namespace cnn::layers::cuda {

void add_conv_rows(KernelTable& table, const std::shared_ptr<Libraries>& libraries);  // cuDNN
void add_fused_conv_rows(KernelTable& table, const std::shared_ptr<Libraries>& libraries);
void add_dense_rows(KernelTable& table, const std::shared_ptr<Libraries>& libraries);  // cuBLASLt

}  // namespace cnn::layers::cuda
