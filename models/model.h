#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "models/learning_rate.h"
#include "runtime/op.h"

namespace cnn::models {

// The features of a network that trains a second classifier in its middle, each without the last,
// linear layer.
struct TwoHeads {
  Value features, auxiliary;
};

// One network on one data set: a row of the catalog.
struct Model {
  std::string_view data_set;      // imagenet, cifar10 or mnist
  std::string_view name;          // as --model has it
  std::string_view printed_name;  // as the run's header has it
  // Square images. Any other size may be given that leaves at least one pixel everywhere; build
  // throws Error that names the layer for one that does not.
  int image_size = 0;
  int batch_size = 0;  // per device
  DefaultRate rate;
  // images [N, channels, H, W] of the compute type -> features [N, K]. Adds all layers but the
  // last.
  Value (*build)(Value images) = nullptr;
  std::int64_t channels = 3;
  std::int64_t classes = 0;           // of the last layer, the background class included
  std::optional<double> head_stddev;  // of the last layer's weights; unset: sqrt(1 / K)
  double head_bias = 0;
  double fp16_loss_scale = 128;
  TwoHeads (*build_two_heads)(Value images) = nullptr;  // null: it has no auxiliary head
  bool ends_in_logits = false;                          // build adds the last layer too
};

// The whole network with its last, linear layer: images -> logits [N, classes] of the compute type.
// Throws Error if the images do not have the model's channels.
Value logits(const Model& model, Value images);

struct Logits {
  Value main, auxiliary;
};

// Weight of the auxiliary head's loss.
inline constexpr float auxiliary_weight = 0.4F;

// The same with the auxiliary head's logits, whose last layer comes last. Throws Error if the model
// has no auxiliary head.
Logits logits_of_two_heads(const Model& model, Value images);

}  // namespace cnn::models
