#include "models/model.h"

#include <string>
#include <string_view>

#include "layers/dense.h"
#include "models/catalog.h"
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

// Returns which models of a data set have an auxiliary head, as the end of an error: ", or choose
// nasnet". Empty if none has.
std::string others_with_two_heads(std::string_view data_set) {
  std::string text;
  for (const Model& model : all()) {
    if (model.data_set == data_set && model.build_two_heads != nullptr) {
      text += (text.empty() ? ", or choose " : " or ") + std::string(model.name);
    }
  }
  return text;
}

}  // namespace

Value logits(const Model& model, Value images) {
  check_channels(model, images);
  const Value features = model.build(images);
  return model.ends_in_logits ? features : last_layer(model, features);
}

Logits logits_of_two_heads(const Model& model, Value images) {
  constexpr double auxiliary_stddev = 0.001;
  check(model.build_two_heads != nullptr, "--auxiliary_head: " + std::string(model.name) +
                                              " has no auxiliary head; drop the flag" +
                                              others_with_two_heads(model.data_set));
  check_channels(model, images);
  const TwoHeads made = model.build_two_heads(images);
  const Value main = last_layer(model, made.features);
  return {main, layers::dense(layers::flatten(made.auxiliary),
                              {.units = model.classes, .relu = false, .stddev = auxiliary_stddev})};
}

}  // namespace cnn::models
