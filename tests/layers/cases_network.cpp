#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/pool.h"
#include "tests/layers/cases.h"

namespace cnn::tests {

namespace {

using layers::BatchNormOptions;
using layers::ConvOptions;
using layers::Padding;

struct Row {
  std::string_view name;
  Shape x;
  ConvOptions options;
  Weight weight = Weight::heavy;
};

// These are convolutions of real networks at batch 1 or 2.
std::vector<Row> rows() {
  const auto resnet = Padding::same_resnet;
  const auto valid = Padding::valid;
  return {
      {"resnet50_stem",
       {1, 3, 224, 224},
       {.filters = 64, .kernel = 7, .stride = 2, .padding = resnet}},
      {"resnet50_1x1_64_64", {1, 64, 56, 56}, {.filters = 64}},
      {"resnet50_1x1_64_256", {1, 64, 56, 56}, {.filters = 256}},
      {"resnet50_3x3_64", {1, 64, 56, 56}, {.filters = 64, .kernel = 3}},
      {"resnet50_1x1_256_128_stride_2", {1, 256, 56, 56}, {.filters = 128, .stride = 2}},
      {"resnet50_1x1_256_512_stride_2", {1, 256, 56, 56}, {.filters = 512, .stride = 2}},
      {"resnet50_3x3_128", {2, 128, 28, 28}, {.filters = 128, .kernel = 3}},
      {"resnet50_3x3_256", {2, 256, 14, 14}, {.filters = 256, .kernel = 3}},
      {"resnet50_1x1_1024_2048_stride_2", {1, 1024, 14, 14}, {.filters = 2048, .stride = 2}},
      {"resnet50_3x3_512", {2, 512, 7, 7}, {.filters = 512, .kernel = 3}},
      {"resnet50_1x1_2048_512", {2, 2048, 7, 7}, {.filters = 512}},
      {"resnet50_v1.5_3x3_128_stride_2",
       {1, 128, 56, 56},
       {.filters = 128, .kernel = 3, .stride = 2, .padding = resnet}},
      {"resnet20_3x3_16_32_stride_2",
       {2, 16, 32, 32},
       {.filters = 32, .kernel = 3, .stride = 2},
       Weight::medium},
      {"inception3_3x3_3_32_stride_2",
       {1, 3, 299, 299},
       {.filters = 32, .kernel = 3, .stride = 2, .padding = valid}},
      {"inception3_1x7_160", {1, 160, 17, 17}, {.filters = 160, .kernel_h = 1, .kernel_w = 7}},
      {"inception3_7x1_160_192", {1, 160, 17, 17}, {.filters = 192, .kernel_h = 7, .kernel_w = 1}},
      {"inception3_5x5_48_64", {1, 48, 35, 35}, {.filters = 64, .kernel = 5}},
      {"inception4_3x1_512_256", {1, 512, 8, 8}, {.filters = 256, .kernel_h = 3, .kernel_w = 1}},
      {"googlenet_5x5_16_32", {2, 16, 28, 28}, {.filters = 32, .kernel = 5}, Weight::medium},
      {"vgg_3x3_3_64", {1, 3, 224, 224}, {.filters = 64, .kernel = 3}},
      {"vgg_3x3_512", {1, 512, 14, 14}, {.filters = 512, .kernel = 3}},
      {"alexnet_11x11_stride_4",
       {1, 3, 227, 227},
       {.filters = 64, .kernel = 11, .stride = 4, .padding = valid}},
      {"alexnet_5x5_64_192", {1, 64, 27, 27}, {.filters = 192, .kernel = 5}},
      {"overfeat_5x5_96_256", {1, 96, 28, 28}, {.filters = 256, .kernel = 5, .padding = valid}},
      {"lenet_5x5_32_64", {2, 32, 14, 14}, {.filters = 64, .kernel = 5}, Weight::medium},
      {"densenet_3x3_12", {2, 28, 16, 16}, {.filters = 12, .kernel = 3}, Weight::medium},
      {"mobilenet_depthwise_96_stride_2",
       {1, 96, 112, 112},
       {.kernel = 3, .stride = 2, .bias = false, .depthwise = true}},
  };
}

constexpr BatchNormOptions resnet_norm{.decay = 0.9, .epsilon = 1e-5, .scale = true};

Value bottleneck(Value x, std::int64_t width, std::int64_t stride) {
  const Value shortcut =
      layers::conv_bn(x, {.filters = 4 * width, .stride = stride, .relu = false}, resnet_norm);
  Value y = layers::conv_bn(x, {.filters = width, .stride = stride}, resnet_norm);
  y = layers::conv_bn(y, {.filters = width, .kernel = 3}, resnet_norm);
  y = layers::conv_bn(y, {.filters = 4 * width, .relu = false}, resnet_norm);
  return layers::relu(layers::add(y, shortcut));
}

Value inception_module(Value x) {
  const Value a = layers::conv_bn(x, {.filters = 12}, {});
  Value b = layers::conv_bn(x, {.filters = 9}, {});
  b = layers::conv_bn(b, {.filters = 20, .kernel_h = 1, .kernel_w = 7}, {});
  const Value c = layers::max_pool(x, {.kernel = 3, .stride = 1, .padding = Padding::same});
  Value d = layers::average_pool(x, {.kernel = 3, .stride = 1, .padding = Padding::same});
  d = layers::conv(d, {.filters = 3});
  return layers::concat(std::vector<Value>{a, b, c, d});
}

Value small_network(Value x) {
  Value y = layers::conv(x, {.filters = 8, .kernel = 5});
  y = layers::max_pool(y, {});
  y = layers::dense(layers::flatten(y), {.units = 20});
  return layers::dense(y, {.units = 11, .relu = false});
}

}  // namespace

std::vector<Case> network_cases() {
  std::vector<Case> result;
  for (const Row& row : rows()) {
    result.push_back({.name = std::string(row.name),
                      .build =
                          [=](Graph& graph) {
                            ConvOptions options = row.options;
                            options.relu = false;
                            return layers::conv(image(graph, "x", row.x), options);
                          },
                      .weight = row.weight,
                      // Sums of thousands of products in f32 depend on the order of addition.
                      .tolerance = 1e-4});
  }
  const auto add = [&](std::string_view name, auto function) {
    result.push_back(
        {.name = std::string(name), .build = function, .tolerance = 1e-4, .bf16_tolerance = 0.03});
  };
  add("block_bottleneck", [](Graph& graph) {
    return bottleneck(image(graph, "x", {3, 12, 6, 6}), 5, 2);
  });
  add("block_inception", [](Graph& graph) {
    return inception_module(image(graph, "x", {2, 17, 5, 7}));
  });
  add("block_lenet", [](Graph& graph) { return small_network(image(graph, "x", {2, 3, 8, 8})); });
  return result;
}

}  // namespace cnn::tests
