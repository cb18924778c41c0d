#pragma once

#include "layers/passes/fuse_conv_plan.h"
#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// Training graphs, after fuse_activations, gradients and moving averages: where the table has
// kernels for the fused ops (asked with images laid out as `image`),
// * BatchNorm behind a Conv2d becomes sums made by a FusedConv, FinishStatistics, and ScaleBias,
//   which also takes a residual, and the batch norm of a projected residual with it;
// * a BatchNorm with ReLU that nothing but convolutions and their weight gradients read becomes the
//   prologue of these: its output vanishes. Before it may also stand an op that is no convolution,
//   then ChannelSums makes its sums;
// * Conv2dBackwardData + BatchNormBackward with ReLU becomes ConvBackwardDataNorm and
//   NormBackwardEnd, if nothing else reads the gradient in between.
// Whatever has no kernel stays as it is, and so do the norms that `plain` names. Values stay the
// same but for rounding, and a gradient passes a ReLU exactly where its value did in the forward
// pass.
Rewritten fuse_convolutions(const Graph& graph, const KernelTable& table, Layout image,
                            const PlainNorms& plain = {});

// Whether the table has kernels for it at all: asked for a convolution of ResNet-50, of images of
// this type laid out as `image`.
bool fuses_convolutions(const KernelTable& table, DataType type, Layout image);

}  // namespace cnn::layers
