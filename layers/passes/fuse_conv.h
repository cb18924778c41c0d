#pragma once

#include "layers/passes/fuse_conv_plan.h"
#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// Fuses batch norms with the convolutions around them in a training graph, after
// fuse_activations(), gradients and moving averages. Makes only ops for which the table has kernels
// when images lie in layout `image`:
// * A BatchNorm behind a Conv2d becomes the statistics output of a FusedConv, a FinishStatistics
//   and a ScaleBias. The ScaleBias also takes a residual, and the batch norm of a projected
//   residual.
// * A BatchNorm with ReLU that only convolutions and their weight gradients read becomes the
//   prologue of these, and its output is never stored. If no convolution makes the image that it
//   normalises, a ChannelSums computes the statistics.
// * Conv2dBackwardData + BatchNormBackward with ReLU becomes ConvBackwardDataNorm and
//   NormBackwardEnd, if nothing else reads the gradient in between.
// Nodes without such kernels and the norms in `plain` stay as they are. Values stay the same but
// for rounding, and a gradient passes a ReLU exactly where its value passed in the forward pass.
Rewritten fuse_convolutions(const Graph& graph, const KernelTable& table, Layout image,
                            const PlainNorms& plain = {});

// Returns whether the table has kernels for fused convolutions at all, by the example of a
// convolution of ResNet-50 on images of this type and layout.
bool fuses_convolutions(const KernelTable& table, DataType type, Layout image);

}  // namespace cnn::layers
