#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/dropout.h"
#include "layers/lrn.h"
#include "layers/pool.h"
#include "models/networks.h"

namespace cnn::models {

using layers::conv;
using layers::dense;
using layers::dropout;
using layers::flatten;
using layers::lrn;
using layers::max_pool;
using layers::Padding;

// Krizhevsky, 2014: the one-column version, without groups and local response normalisation.
Value alexnet(Value images) {
  Value x = conv(images, {.filters = 64, .kernel = 11, .stride = 4, .padding = Padding::valid});
  x = max_pool(x, {.kernel = 3});
  x = conv(x, {.filters = 192, .kernel = 5});
  x = max_pool(x, {.kernel = 3});
  x = conv(x, {.filters = 384, .kernel = 3});
  x = conv(x, {.filters = 384, .kernel = 3});
  x = conv(x, {.filters = 256, .kernel = 3});
  x = flatten(max_pool(x, {.kernel = 3}));
  x = dropout(dense(x, {.units = 4096}), 0.5);
  return dropout(dense(x, {.units = 4096}), 0.5);
}

Value alexnet_cifar(Value images) {
  const layers::LrnAttributes normalise{.radius = 4, .bias = 1, .alpha = 0.001 / 9, .beta = 0.75};
  const layers::PoolOptions pool{.kernel = 3, .stride = 2, .padding = Padding::same};
  Value x = conv(images, {.filters = 64, .kernel = 5, .stddev = 0.05});
  x = lrn(max_pool(x, pool), normalise);
  x = conv(x, {.filters = 64, .kernel = 5, .stddev = 0.05, .bias_value = 0.1});
  x = flatten(max_pool(lrn(x, normalise), pool));
  x = dense(x, {.units = 384, .stddev = 0.04, .bias_value = 0.1});
  return dense(x, {.units = 192, .stddev = 0.04, .bias_value = 0.1});
}

}  // namespace cnn::models
