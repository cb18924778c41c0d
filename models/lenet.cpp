#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/pool.h"
#include "models/networks.h"

namespace cnn::models {

using layers::conv;
using layers::dense;
using layers::flatten;
using layers::max_pool;

// LeCun et al., 1998, with the widths of a later tutorial.
Value lenet(Value images) {
  Value x = max_pool(conv(images, {.filters = 32, .kernel = 5}), {});
  x = max_pool(conv(x, {.filters = 64, .kernel = 5}), {});
  return dense(flatten(x), {.units = 512});
}

}  // namespace cnn::models
