#pragma once

#include <string>

#include "layers/cuda/operation_graph.h"
#include "layers/window.h"
#include "runtime/tensor.h"

namespace cnn::layers::cuda {

// One convolution as the library runs it: all tensors in nhwc and of one type, sums in f32. The
// direction says which of x, w and y is computed.
struct ConvGraph {
  Direction direction{};
  DataType type = DataType::f32;
  Shape x, w, y;                          // w [O, I / groups, kh, kw]
  std::int64_t x_pitch = 0, y_pitch = 0;  // elements between pixels, where that is more than C
  Window window;
  // Forward only: y = convolution + bias, then relu; the bias [O] is of the same type.
  bool bias = false;
  bool relu = false;
};

// Returns a key that is equal for equal graphs, such as "forward f16 x 256x64x56x56 w 64x64x3x3
// stride 1x1 pad 1,1,1,1 bias relu".
std::string key_of(const ConvGraph& graph);

// Returns the operation graph of the convolution. Its tensors in memory are x, w, then the bias if
// there is one, then y.
OperationGraph operations_of(const ConvGraph& graph);

}  // namespace cnn::layers::cuda
