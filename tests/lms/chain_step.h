#pragma once

#include <vector>

#include "tests/lms/step_case.h"
#include "tests/support/test_ops.h"

namespace cnn::tests {

// Returns the training step of a chain: y1 = conv(images, w1), y2 = conv(y1, w2) and so on. The
// backward pass visits the layers from last to first. For each layer it computes the weight
// gradient from the layer's input, updates the weights and computes the input gradient. A chain of
// three layers has these steps:
//   0 y1   1 y2   2 y3   3 loss_backward (reads y3)
//   4 dw3 (y2)   5 update   6 dy2   7 dw2 (y1)   8 update   9 dy1   10 dw1   11 update
// The step's results are the weights. Every image takes 64 bytes per channel.
inline StepCase chain_step(std::size_t layers, std::int64_t channels = 1) {
  StepCase c;
  std::vector<Value> y{c.images(channels)}, weights;
  for (std::size_t n = 0; n < layers; ++n) {
    weights.push_back(c.weights(channels));
    y.push_back(c.make("conv", {y.back(), weights.back()}));
  }
  const Value first = c.make("loss_backward", {y.back()});
  Value dy = first;
  for (std::size_t n = layers; n-- > 0;) {
    const Value dw = c.make_all("conv_backward_weights", {dy, y[n]}, {weights[n].desc()}).front();
    emit(Descend(), {weights[n], dw});
    if (n > 0) {
      dy = c.make("conv_backward_data", {dy, weights[n]});
    }
  }
  c.settle(first);
  return c;
}

}  // namespace cnn::tests
