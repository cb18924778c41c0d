#pragma once

#include <memory>

#include "layers/cuda/cudnn/libraries.h"
#include "runtime/kernel.h"

// The rows whose kernels are a library's; kernels.cpp lists them.
namespace cnn::layers::cuda {

void add_conv_rows(KernelTable& table, const std::shared_ptr<Libraries>& libraries);  // cuDNN
void add_fused_conv_rows(KernelTable& table, const std::shared_ptr<Libraries>& libraries);
void add_dense_rows(KernelTable& table, const std::shared_ptr<Libraries>& libraries);  // cuBLASLt

}  // namespace cnn::layers::cuda
