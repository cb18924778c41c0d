#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/dropout.h"
#include "layers/pool.h"
#include "models/networks.h"

namespace cnn::models {

using layers::dense;
using layers::dropout;

// Simonyan and Zisserman, 2014.
Value vgg(Value images, const std::array<int, 5>& convolutions) {
  constexpr std::array<int, 5> widths{64, 128, 256, 512, 512};
  Value x = images;
  for (std::size_t group = 0; group < widths.size(); ++group) {
    for (int i = 0; i < convolutions[group]; ++i) {
      x = layers::conv(x, {.filters = widths[group], .kernel = 3});
    }
    x = layers::max_pool(x, {});
  }
  x = dropout(dense(layers::flatten(x), {.units = 4096}), 0.5);
  return dropout(dense(x, {.units = 4096}), 0.5);
}

}  // namespace cnn::models
