#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/dropout.h"
#include "layers/pool.h"
#include "models/networks.h"

namespace cnn::models {

using layers::conv;
using layers::dense;
using layers::dropout;
using layers::flatten;
using layers::max_pool;

// The well-known tutorial network on handwritten digits; its last layer is initialised like the
// others.
Value mnist_deep(Value images) {
  constexpr double stddev = 0.1;
  constexpr double bias = 0.1;
  Value x = images;
  for (const int filters : {32, 64}) {
    x = conv(x, {.filters = filters, .kernel = 5, .stddev = stddev, .bias_value = bias});
    x = max_pool(x, {});
  }
  x = dense(flatten(x), {.units = 1024, .stddev = stddev, .bias_value = bias});
  return dropout(x, 0.5);
}

}  // namespace cnn::models
