#include <cmath>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/pool.h"
#include "models/networks.h"

namespace cnn::models {

using layers::conv;

namespace {

Value activate(Value x) {
  return layers::relu(layers::batch_norm(x, {.decay = 0.9, .epsilon = 1e-5, .scale = true}));
}

// He et al., 2015, with nine taps assumed for every kernel.
double stddev(std::int64_t filters) { return std::sqrt(2.0 / 9.0 / static_cast<double>(filters)); }

Value dense_layer(Value x, int growth) {
  const Value added =
      conv(activate(x), {.filters = growth, .kernel = 3, .relu = false, .stddev = stddev(growth)});
  return layers::concat({{x, added}});
}

// Keeps the number of channels, as in the paper.
Value transition(Value x) {
  const std::int64_t width = x.desc().shape[1];
  const Value mixed = conv(activate(x), {.filters = width, .stddev = stddev(width)});
  return layers::average_pool(mixed, {});
}

}  // namespace

// Huang et al., 2016: without bottlenecks and compression.
Value densenet(Value images, int layers, int growth) {
  Value x = conv(images, {.filters = 16, .kernel = 3, .relu = false});
  for (int block = 0; block < 3; ++block) {
    if (block > 0) {
      x = transition(x);
    }
    for (int i = 0; i < layers; ++i) {
      x = dense_layer(x, growth);
    }
  }
  return layers::spatial_mean(activate(x));
}

}  // namespace cnn::models
