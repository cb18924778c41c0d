#include "layers/conv.h"
#include "layers/operands.h"
#include "tests/layers/cases.h"

namespace cnn::tests {

namespace {

using layers::ConvAttributes;
using layers::ConvOptions;
using layers::Padding;

struct Row {
  std::string_view name;
  Shape x;
  ConvOptions options;
  Weight weight = Weight::small;
};

// The rows have odd channel counts and sizes, asymmetric padding and strides that do not divide the
// size.
std::vector<Row> rows() {
  return {
      {"conv_1x1_3_to_5", {2, 3, 7, 9}, {.filters = 5}},
      {"conv_1x1_64_to_100_stride_2", {2, 64, 7, 9}, {.filters = 100, .stride = 2}},
      {"conv_1x1_64_to_48_large", {2, 64, 20, 21}, {.filters = 48}},
      {"conv_1x1_32_to_64_large_without_bias", {2, 32, 21, 20}, {.filters = 64, .bias = false}},
      {"conv_1x1_48_to_32_stride_2_without_bias",
       {3, 48, 7, 10},
       {.filters = 32, .stride = 2, .bias = false}},
      {"conv_1x1_64_to_80_stride_3", {2, 64, 10, 8}, {.filters = 80, .stride = 3}},
      {"conv_1x1_32_to_48_image_of_one_pixel", {3, 32, 1, 1}, {.filters = 48, .bias = false}},
      {"conv_1x1_image_of_one_pixel", {3, 20, 1, 1}, {.filters = 17}},
      {"conv_3x3_16_to_17", {2, 16, 13, 11}, {.filters = 17, .kernel = 3}},
      {"conv_3x3_12_to_20_stride_2_even",
       {1, 12, 8, 10},
       {.filters = 20, .kernel = 3, .stride = 2}},
      {"conv_3x3_20_to_12_stride_2_valid",
       {2, 20, 15, 13},
       {.filters = 12, .kernel = 3, .stride = 2, .padding = Padding::valid}},
      {"conv_3x3_16_to_32_stride_2_resnet",
       {2, 16, 14, 14},
       {.filters = 32, .kernel = 3, .stride = 2, .padding = Padding::same_resnet}},
      {"conv_3x3_100_to_3", {1, 100, 5, 7}, {.filters = 3, .kernel = 3}},
      {"conv_3x3_without_bias", {2, 32, 9, 9}, {.filters = 48, .kernel = 3, .bias = false}},
      {"conv_5x5_1_to_32", {2, 1, 12, 12}, {.filters = 32, .kernel = 5}},
      {"conv_5x5_5_to_16_valid",
       {2, 5, 9, 8},
       {.filters = 16, .kernel = 5, .padding = Padding::valid}},
      {"conv_7x7_3_to_64_stride_2_same", {1, 3, 32, 32}, {.filters = 64, .kernel = 7, .stride = 2}},
      {"conv_7x7_3_to_64_stride_2_resnet",
       {1, 3, 33, 31},
       {.filters = 64, .kernel = 7, .stride = 2, .padding = Padding::same_resnet}},
      {"conv_11x11_3_to_64_stride_4",
       {1, 3, 35, 47},
       {.filters = 64, .kernel = 11, .stride = 4, .padding = Padding::valid}},
      {"conv_1x7_17_to_20", {2, 17, 9, 11}, {.filters = 20, .kernel_h = 1, .kernel_w = 7}},
      {"conv_7x1_20_to_17", {2, 20, 9, 11}, {.filters = 17, .kernel_h = 7, .kernel_w = 1}},
      {"conv_3x3_32_to_48_many_tiles", {1, 32, 29, 27}, {.filters = 48, .kernel = 3}},
      {"conv_3x3_48_to_32_many_tiles_valid",
       {2, 48, 21, 21},
       {.filters = 32, .kernel = 3, .padding = Padding::valid, .bias = false}},
      {"conv_1x3_64_to_64", {1, 64, 8, 8}, {.filters = 64, .kernel_h = 1, .kernel_w = 3}},
      {"conv_with_relu", {2, 16, 7, 7}, {.filters = 20, .kernel = 3, .relu = true}},
      {"conv_depthwise_3x3_20", {2, 20, 9, 7}, {.kernel = 3, .depthwise = true}},
      {"conv_depthwise_3x3_17_stride_2",
       {2, 17, 8, 8},
       {.kernel = 3, .stride = 2, .bias = false, .depthwise = true}},
      {"conv_depthwise_3x3_32", {2, 32, 14, 14}, {.kernel = 3, .bias = false, .depthwise = true}},
  };
}

Case layer(const Row& row) {
  return {.name = std::string(row.name),
          .build =
              [=](Graph& graph) {
                ConvOptions options = row.options;
                // A ReLU is a node of its own, so only one case has it.
                options.relu = row.name == "conv_with_relu";
                return layers::conv(image(graph, "x", row.x), options);
              },
          .weight = row.weight};
}

// Returns a case with epilogues inside the convolution, as the fusion passes create them.
Case fused(std::string name, const ConvAttributes& epilogue) {
  const auto build = [epilogue](Graph& graph) -> std::optional<Value> {
    ConvAttributes attributes = epilogue;
    attributes.window = {
        .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_bottom = 1, .pad_left = 1, .pad_right = 1};
    std::vector<Value> in{
        image(graph, "x", {2, 16, 7, 9}),
        graph.parameter("w", layers::described({20, 16, 3, 3}, DataType::f32), {})};
    if (epilogue.bias) {
      in.push_back(graph.parameter("b", layers::described({20}, DataType::f32), {}));
    }
    if (epilogue.residual) {
      in.push_back(image(graph, "residual", {2, 20, 7, 9}));
    }
    return emit_all(layers::Conv2d(attributes), in).front();
  };
  return {.name = std::move(name), .build = build};
}

}  // namespace

std::vector<Case> conv_cases() {
  std::vector<Case> result;
  for (const Row& row : rows()) {
    result.push_back(layer(row));
  }
  result.push_back(fused("conv_fused_relu", {.window = {}, .relu = true}));
  result.push_back(fused("conv_fused_bias_relu", {.window = {}, .bias = true, .relu = true}));
  result.push_back(fused("conv_fused_residual", {.window = {}, .residual = true}));
  result.push_back(
      fused("conv_fused_residual_relu", {.window = {}, .residual = true, .relu = true}));
  result.push_back(fused("conv_fused_bias_residual_relu",
                         {.window = {}, .bias = true, .residual = true, .relu = true}));
  return result;
}

}  // namespace cnn::tests
