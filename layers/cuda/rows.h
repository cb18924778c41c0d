#pragma once

#include "runtime/kernel.h"

// One function per file of this folder, each adding the rows of that file. own_kernels.cpp lists
// those of our own kernels.
namespace cnn::layers::cuda {

void add_batch_norm_rows(KernelTable& table);
void add_batch_norm_backward_rows(KernelTable& table);
void add_batch_norm_inference_rows(KernelTable& table);  // BatchNormInference, FoldBatchNorm
void add_moving_average_rows(KernelTable& table);
void add_pool_rows(KernelTable& table);  // MaxPool, AveragePool
void add_pool_backward_rows(KernelTable& table);
void add_spatial_mean_rows(KernelTable& table);  // SpatialMean and its gradient
void add_lrn_rows(KernelTable& table);           // Lrn and its gradient

}  // namespace cnn::layers::cuda
