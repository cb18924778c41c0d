#include "models/model.h"

#include <string>

#include "layers/dense.h"
#include "runtime/error.h"

namespace cnn::models {

Value logits(const Model& model, Value images) {
  const Shape& shape = images.desc().shape;
  check(shape.rank() == 4 && shape[1] == model.channels,
        "model " + std::string(model.name) + " takes images of " + std::to_string(model.channels) +
            " channels, not " + to_string(shape));
  const Value features = layers::flatten(model.build(images));
  return layers::dense(features, {.units = model.classes,
                                  .relu = false,
                                  .stddev = model.head_stddev,
                                  .bias_value = model.head_bias});
}

}  // namespace cnn::models
