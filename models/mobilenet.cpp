#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/dropout.h"
#include "layers/elementwise.h"
#include "layers/pool.h"
#include "models/networks.h"

namespace cnn::models {

namespace {

constexpr double stddev = 0.09;

Value norm(Value x, layers::ConvOptions options) {
  options.relu = false;
  options.stddev = stddev;
  return layers::conv_bn(
      x, options, {.decay = 0.997, .epsilon = 1e-3, .scale = true, .decay_parameters = true});
}

struct Block {
  std::int64_t expansion, filters, stride;
};

// An inverted residual block: wide inside, narrow and linear outside.
Value inverted_residual(Value x, const Block& block) {
  const std::int64_t channels = x.desc().shape[1];
  const std::int64_t width = block.expansion * channels;
  Value y = x;
  if (block.expansion > 1) {
    y = layers::relu6(norm(y, {.filters = width}));
  }
  y = norm(y, {.filters = width, .kernel = 3, .stride = block.stride, .depthwise = true});
  y = norm(layers::relu6(y), {.filters = block.filters});
  return block.stride == 1 && channels == block.filters ? layers::add(x, y) : y;
}

}  // namespace

// Sandler et al., 2018 (v2), width multiplier 1. It has its own classifier, so the catalog's last
// layer is a second one, from classes to classes, as in tf_cnn_benchmarks.
Value mobilenet(Value images) {
  constexpr std::int64_t classes = 1001;
  struct Stage {
    Block first;
    int blocks;
  };
  Value x = layers::relu6(norm(images, {.filters = 32, .kernel = 3, .stride = 2}));
  for (const auto& [first, blocks] :
       {Stage{{1, 16, 1}, 1}, Stage{{6, 24, 2}, 2}, Stage{{6, 32, 2}, 3}, Stage{{6, 64, 2}, 4},
        Stage{{6, 96, 1}, 3}, Stage{{6, 160, 2}, 3}, Stage{{6, 320, 1}, 1}}) {
    x = inverted_residual(x, first);
    for (int i = 1; i < blocks; ++i) {
      x = inverted_residual(x, {first.expansion, first.filters, 1});
    }
  }
  x = layers::relu6(norm(x, {.filters = 1280}));
  x = layers::average_pool(x, {.kernel = x.desc().shape[2], .stride = 1});  // the whole map
  x = layers::dropout(x, 0.8);
  return layers::flatten(layers::conv(x, {.filters = classes, .relu = false, .stddev = stddev}));
}

}  // namespace cnn::models
