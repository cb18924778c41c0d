#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/pool.h"
#include "models/networks.h"

namespace cnn::models {

using layers::conv;
using layers::max_pool;
using layers::Padding;

namespace {

// Widths of the four branches: 1x1; 1x1 and 3x3; 1x1 and 5x5; 1x1 after a pool.
struct Widths {
  int one, reduce3, three, reduce5, five, pool;
};

Value module(Value x, const Widths& widths) {
  // Every module's scope has the number 0, for compatibility with existing checkpoints.
  const NameScope scope(*x.graph, "incept_v10");
  const Value one = conv(x, {.filters = widths.one});
  const Value three =
      conv(conv(x, {.filters = widths.reduce3}), {.filters = widths.three, .kernel = 3});
  const Value five =
      conv(conv(x, {.filters = widths.reduce5}), {.filters = widths.five, .kernel = 5});
  const Value pooled = max_pool(x, {.kernel = 3, .stride = 1, .padding = Padding::same});
  return layers::concat({{one, three, five, conv(pooled, {.filters = widths.pool})}});
}

}  // namespace

// Szegedy et al., 2014, without auxiliary classifiers, normalisation and dropout.
Value googlenet(Value images) {
  const layers::PoolOptions pool{.kernel = 3, .stride = 2, .padding = Padding::same};
  Value x = max_pool(conv(images, {.filters = 64, .kernel = 7, .stride = 2}), pool);
  x = conv(x, {.filters = 64});
  x = max_pool(conv(x, {.filters = 192, .kernel = 3}), pool);
  x = module(x, {64, 96, 128, 16, 32, 32});
  x = module(x, {128, 128, 192, 32, 96, 64});
  x = max_pool(x, pool);
  x = module(x, {192, 96, 208, 16, 48, 64});
  x = module(x, {160, 112, 224, 24, 64, 64});
  x = module(x, {128, 128, 256, 24, 64, 64});
  x = module(x, {112, 144, 288, 32, 64, 64});
  x = module(x, {256, 160, 320, 32, 128, 128});
  x = max_pool(x, pool);
  x = module(x, {256, 160, 320, 32, 128, 128});
  x = module(x, {384, 192, 384, 48, 128, 128});
  return layers::spatial_mean(x);
}

}  // namespace cnn::models
