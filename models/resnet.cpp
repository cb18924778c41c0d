// He et al., 2015 (v1) and 2016 (v2).
#include <string>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/elementwise.h"
#include "layers/pool.h"
#include "models/networks.h"

namespace cnn::models {

using layers::add;
using layers::ConvOptions;
using layers::Padding;
using layers::relu;

namespace {

Value norm(Value x, const ConvOptions& options) {
  return layers::conv_bn(x, options, {.decay = 0.9, .epsilon = 1e-5, .scale = true});
}

Value bare(Value x, ConvOptions options) {
  options.bias = false;
  options.relu = false;
  return layers::conv(x, options);
}

// Precedes the blocks of v2 and follows its last one. Its batch norm has no gamma and other
// constants than norms after convolutions, as in the reproduced networks.
Value preactivate(Value x) { return relu(layers::batch_norm(x, {})); }

struct Block {
  std::int64_t filters = 0;  // of the block's output; a bottleneck is a quarter as wide
  std::int64_t stride = 1;
};

bool keeps_shape(Value x, const Block& block) {
  return block.stride == 1 && x.desc().shape[1] == block.filters;
}

Value bottleneck_v1(Value x, const Block& block, bool stride_on_first) {
  const std::int64_t width = block.filters / 4;
  const std::int64_t first = stride_on_first ? block.stride : 1;
  const Value shortcut =
      keeps_shape(x, block)
          ? x
          : norm(x, {.filters = block.filters, .stride = block.stride, .relu = false});
  Value y = norm(x, {.filters = width, .stride = first});
  y = norm(y, {.filters = width,
               .kernel = 3,
               .stride = block.stride / first,
               .padding = Padding::same_resnet});
  y = norm(y, {.filters = block.filters, .relu = false});
  return relu(add(shortcut, y));
}

Value bottleneck_v2(Value x, Value activated, const Block& block) {
  const std::int64_t width = block.filters / 4;
  const Value shortcut = keeps_shape(x, block)
                             ? x
                             : bare(activated, {.filters = block.filters, .stride = block.stride});
  Value y = norm(activated, {.filters = width, .stride = block.stride});
  y = norm(y, {.filters = width, .kernel = 3, .padding = Padding::same_resnet});
  return add(shortcut, bare(y, {.filters = block.filters}));
}

Value bottleneck(Value x, ResnetVersion version, const Block& block, int index) {
  if (version == ResnetVersion::v2) {
    const Value activated = preactivate(x);
    const NameScope scope(*x.graph, "resnet_v2" + std::to_string(index));
    return bottleneck_v2(x, activated, block);
  }
  const bool v1 = version == ResnetVersion::v1;
  const NameScope scope(*x.graph, (v1 ? "resnet_v1" : "resnet_v1.5") + std::to_string(index));
  return bottleneck_v1(x, block, v1);
}

// A shortcut without parameters: drops pixels and adds zero channels on both sides.
Value plain_shortcut(Value x, const Block& block) {
  const std::int64_t missing = block.filters - x.desc().shape[1];
  if (missing == 0) {
    return x;
  }
  const Value pooled = layers::average_pool(x, {.kernel = 1, .stride = block.stride});
  return layers::pad_channels(pooled, missing / 2, missing - missing / 2);
}

Value residual(Value x, ResnetVersion version, const Block& block) {
  const ConvOptions first{.filters = block.filters, .kernel = 3, .stride = block.stride};
  if (version == ResnetVersion::v2) {
    Value y = norm(preactivate(x), first);
    y = bare(y, {.filters = block.filters, .kernel = 3});
    return add(plain_shortcut(x, block), y);
  }
  const Value y = norm(norm(x, first), {.filters = block.filters, .kernel = 3, .relu = false});
  return relu(add(plain_shortcut(x, block), y));
}

Value finish(Value x, ResnetVersion version) {
  return layers::spatial_mean(version == ResnetVersion::v2 ? preactivate(x) : x);
}

}  // namespace

Value resnet(Value images, ResnetVersion version, const std::array<int, 4>& blocks) {
  Value x =
      norm(images, {.filters = 64, .kernel = 7, .stride = 2, .padding = Padding::same_resnet});
  x = layers::max_pool(x, {.kernel = 3, .stride = 2, .padding = Padding::same});
  int index = 0;
  std::int64_t filters = 256;
  for (const int count : blocks) {
    for (int i = 0; i < count; ++i) {
      const std::int64_t stride = i == 0 && filters > 256 ? 2 : 1;
      x = bottleneck(x, version, {filters, stride}, index++);
    }
    filters *= 2;
  }
  return finish(x, version);
}

Value resnet_cifar(Value images, ResnetVersion version, int blocks) {
  Value x = norm(images, {.filters = 16, .kernel = 3, .relu = version == ResnetVersion::v2});
  for (const int filters : {16, 32, 64}) {
    for (int i = 0; i < blocks; ++i) {
      x = residual(x, version, {filters, i == 0 && filters > 16 ? 2 : 1});
    }
  }
  return finish(x, version);
}

}  // namespace cnn::models
