// He et al., 2015 (v1, its stride on the 3x3 convolution) and 2016 (v2), as in TensorFlow's
// official models: a projection in the first block of every stage, batch norms with weight decay,
// and layers numbered by kind under "resnet_model".
#include <string>
#include <vector>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/pool.h"
#include "models/networks.h"

namespace cnn::models {

using layers::add;
using layers::Padding;
using layers::relu;

namespace {

class OfficialLayers {
 public:
  Value conv(Value x, std::int64_t filters, std::int64_t kernel, std::int64_t stride) {
    return layers::conv(x, {.filters = filters,
                            .kernel = kernel,
                            .stride = stride,
                            .padding = Padding::same_resnet,
                            .bias = false,
                            .relu = false,
                            .layer = numbered("conv2d", convs_++),
                            .weights = "kernel"});
  }

  Value norm(Value x) {
    return layers::batch_norm(x, {.decay = 0.997,
                                  .epsilon = 1e-5,
                                  .scale = true,
                                  .decay_parameters = true,
                                  .layer = numbered("batch_normalization", norms_++)});
  }

 private:
  // Returns "conv2d", "conv2d_1", "conv2d_2", ...
  static std::string numbered(const std::string& kind, int index) {
    return index == 0 ? kind : kind + "_" + std::to_string(index);
  }

  int convs_ = 0, norms_ = 0;
};

struct Block {
  std::int64_t filters = 0;  // of its first convolution
  std::int64_t stride = 1;
  bool projects = false;  // its shortcut is a convolution
};

struct Step {
  std::int64_t filters = 0, kernel = 1, stride = 1;
};

std::vector<Step> steps_of(const Block& block, bool bottleneck) {
  if (bottleneck) {
    return {{block.filters, 1, 1}, {block.filters, 3, block.stride}, {4 * block.filters, 1, 1}};
  }
  return {{block.filters, 3, block.stride}, {block.filters, 3, 1}};
}

// Activations follow the convolutions.
Value block_v1(OfficialLayers& make, Value x, const Block& block, bool bottleneck) {
  const std::vector<Step> steps = steps_of(block, bottleneck);
  const Value shortcut =
      block.projects ? make.norm(make.conv(x, steps.back().filters, 1, block.stride)) : x;
  Value y = x;
  for (const Step& step : steps) {
    y = make.norm(make.conv(y, step.filters, step.kernel, step.stride));
    if (&step != &steps.back()) {
      y = relu(y);
    }
  }
  return relu(add(y, shortcut));
}

// Activations come before the convolutions, and the projection takes the first activation.
Value block_v2(OfficialLayers& make, Value x, const Block& block, bool bottleneck) {
  const std::vector<Step> steps = steps_of(block, bottleneck);
  Value y = relu(make.norm(x));
  const Value shortcut = block.projects ? make.conv(y, steps.back().filters, 1, block.stride) : x;
  for (const Step& step : steps) {
    if (&step != &steps.front()) {
      y = relu(make.norm(y));
    }
    y = make.conv(y, step.filters, step.kernel, step.stride);
  }
  return add(y, shortcut);
}

}  // namespace

Value official_resnet(Value images, const OfficialResnet& network) {
  constexpr std::int64_t classes = 1001;
  const NameScope scope(*images.graph, "resnet_model", NameScope::Position::replaces_innermost);
  const bool v1 = network.version == ResnetVersion::v1;
  OfficialLayers make;
  Value x = make.conv(images, 64, 7, 2);
  if (v1) {
    x = relu(make.norm(x));
  }
  x = layers::max_pool(x, {.kernel = 3, .stride = 2, .padding = Padding::same});
  std::int64_t filters = 64;
  for (const int count : network.blocks) {
    for (int i = 0; i < count; ++i) {
      const Block block{filters, i == 0 && filters > 64 ? 2 : 1, i == 0};
      x = (v1 ? block_v1 : block_v2)(make, x, block, network.bottleneck);
    }
    filters *= 2;
  }
  if (!v1) {
    x = relu(make.norm(x));
  }
  return layers::dense(layers::spatial_mean(x), {.units = classes,
                                                 .relu = false,
                                                 .glorot = true,
                                                 .layer = "dense",
                                                 .weights = "kernel",
                                                 .biases = "bias"});
}

}  // namespace cnn::models
