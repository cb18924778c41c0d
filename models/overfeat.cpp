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
using layers::Padding;

// Sermanet et al., 2013: the fast model.
Value overfeat(Value images) {
  Value x = conv(images, {.filters = 96, .kernel = 11, .stride = 4, .padding = Padding::valid});
  x = max_pool(x, {});
  x = conv(x, {.filters = 256, .kernel = 5, .padding = Padding::valid});
  x = max_pool(x, {});
  for (const int filters : {512, 1024, 1024}) {
    x = conv(x, {.filters = filters, .kernel = 3});
  }
  x = flatten(max_pool(x, {}));
  x = dropout(dense(x, {.units = 3072}), 0.5);
  return dropout(dense(x, {.units = 4096}), 0.5);
}

}  // namespace cnn::models
