#include "models/model.h"

#include <string>

#include "layers/dense.h"
#include "runtime/error.h"

namespace cnn::models {

namespace {

void check_channels(const Model& model, Value images) {
  const Shape& shape = images.desc().shape;
  check(shape.rank() == 4 && shape[1] == model.channels,
        "model " + std::string(model.name) + " takes images of " + std::to_string(model.channels) +
            " channels, not " + to_string(shape));
}

Value last_layer(const Model& model, Value features) {
  return layers::dense(layers::flatten(features), {.units = model.classes,
                                                   .relu = false,
                                                   .stddev = model.head_stddev,
                                                   .bias_value = model.head_bias});
}

}  // namespace

Value logits(const Model& model, Value images) {
  check_channels(model, images);
  const Value features = model.build(images);
  return model.ends_in_logits ? features : last_layer(model, features);
}

Logits logits_of_two_heads(const Model& model, Value images) {
  constexpr double auxiliary_stddev = 0.001;
  check(model.build_two_heads != nullptr,
        "--auxiliary_head: " + std::string(model.name) +
            " has no auxiliary head; drop the flag, or choose inception3, nasnet or nasnetlarge");
  check_channels(model, images);
  const TwoHeads made = model.build_two_heads(images);
  const Value main = last_layer(model, made.features);
  return {main, layers::dense(layers::flatten(made.auxiliary),
                              {.units = model.classes, .relu = false, .stddev = auxiliary_stddev})};
}

}  // namespace cnn::models
