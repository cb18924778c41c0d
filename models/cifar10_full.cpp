#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/lrn.h"
#include "layers/pool.h"
#include "models/networks.h"

namespace cnn::models {

// The network of Caffe's example cifar10_full: its pools, strides, widths and initial values. Its
// first ReLU precedes the pool here, which changes no value. All parameters learn at one rate;
// Caffe's biases learn twice as fast.
Value cifar10_full(Value images) {
  // A window of 3 x 3; Caffe divides alpha by its size.
  const layers::LrnAttributes normalise{.radius = 1, .bias = 1, .alpha = 5e-5 / 9, .beta = 0.75};
  const layers::PoolOptions pool{.kernel = 3, .stride = 2, .padding = layers::Padding::same};
  Value x = layers::conv(images, {.filters = 32, .kernel = 5, .stddev = 1e-4});
  x = layers::lrn_within(layers::max_pool(x, pool), normalise);
  x = layers::conv(x, {.filters = 32, .kernel = 5, .stddev = 0.01});
  x = layers::lrn_within(layers::average_pool(x, pool), normalise);
  x = layers::conv(x, {.filters = 64, .kernel = 5, .stddev = 0.01});
  return layers::flatten(layers::average_pool(x, pool));
}

}  // namespace cnn::models
