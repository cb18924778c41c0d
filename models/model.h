#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "models/learning_rate.h"
#include "runtime/op.h"

namespace cnn::models {

// The features of a network with an auxiliary classifier in its middle, each before the last,
// linear layer.
struct TwoHeads {
  Value features, auxiliary;
};

// One network on one data set: a row of the catalog.
struct Model {
  std::string_view data_set;      // imagenet, cifar10 or mnist
  std::string_view name;          // value of --model
  std::string_view printed_name;  // name in the run's header
  // Side of the square images, in pixels. Other sizes work if every layer keeps a pixel; otherwise
  // build throws Error with the layer's name.
  int image_size = 0;
  int batch_size = 0;  // per device
  DefaultRate rate;
  // images [N, channels, H, W] of the compute type -> features [N, K]. Appends all layers except
  // the last.
  Value (*build)(Value images) = nullptr;
  std::int64_t channels = 3;
  std::int64_t classes = 0;           // of the last layer, including the background class
  std::optional<double> head_stddev;  // of the last layer's weights; unset: sqrt(1 / K)
  double head_bias = 0;
  double fp16_loss_scale = 128;
  TwoHeads (*build_two_heads)(Value images) = nullptr;  // null: no auxiliary head
  bool ends_in_logits = false;                          // build appends the last layer too
};

// Appends the whole network with its last, linear layer: images -> logits [N, classes] of the
// compute type. Throws Error if the images have another number of channels than the model.
Value logits(const Model& model, Value images);

struct Logits {
  Value main, auxiliary;
};

// Weight of the auxiliary head's loss.
inline constexpr float auxiliary_weight = 0.4F;

// Appends the network and the auxiliary head, whose last layer comes last. Throws Error if the
// model has no auxiliary head.
Logits logits_of_two_heads(const Model& model, Value images);

}  // namespace cnn::models
