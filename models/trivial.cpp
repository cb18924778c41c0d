#include "layers/dense.h"
#include "models/networks.h"

namespace cnn::models {

// One unit and then 4096 of them: nearly no work, to time everything but the network.
Value trivial(Value images) {
  const Value x = layers::dense(layers::flatten(images), {.units = 1});
  return layers::dense(x, {.units = 4096});
}

}  // namespace cnn::models
