#pragma once

#include "runtime/kernel.h"

// Registration of our own CUDA kernels: one function per file of this folder, each of which adds
// that file's rows to the kernel table. own_kernels.cpp lists them all.
namespace cnn::layers::cuda {

void add_batch_norm_rows(KernelTable& table);
void add_batch_norm_backward_rows(KernelTable& table);
void add_batch_norm_inference_rows(KernelTable& table);  // BatchNormInference, FoldBatchNorm
void add_sliced_norm_rows(KernelTable& table);           // all of layers/sliced_norm.h
void add_moving_average_rows(KernelTable& table);
void add_fused_norm_rows(KernelTable& table);  // all of layers/fused_norm.h
void add_pool_rows(KernelTable& table);        // MaxPool, AveragePool
void add_pool_backward_rows(KernelTable& table);
void add_subsample_rows(KernelTable& table);     // Subsample and its gradient
void add_spatial_mean_rows(KernelTable& table);  // SpatialMean and its gradient
void add_lrn_rows(KernelTable& table);           // Lrn and its gradient
void add_lrn_within_rows(KernelTable& table);    // WithinLrn and its gradient

void add_activation_rows(KernelTable& table);   // Relu and its gradient
void add_elementwise_rows(KernelTable& table);  // Add, Scale, Fill
void add_convert_rows(KernelTable& table);      // Convert, Normalise
// Concat, Split, PadChannels, SliceChannels, and all of layers/row_slice.h and
// layers/column_slice.h.
void add_concat_rows(KernelTable& table);
void add_batch_slice_rows(KernelTable& table);  // SliceBatch, ConcatBatch
void add_flatten_rows(KernelTable& table);      // Flatten, Unflatten
void add_dropout_rows(KernelTable& table);
void add_drop_path_rows(KernelTable& table);
void add_loss_rows(KernelTable& table);  // SoftmaxCrossEntropy and its gradient, Accuracy
void add_synthetic_labels_rows(KernelTable& table);
void add_optimizer_rows(KernelTable& table);  // Update, AdvanceLossScale, AdvanceAdam
void add_found_inf_rows(KernelTable& table);
void add_stale_gradient_rows(KernelTable& table);

}  // namespace cnn::layers::cuda
