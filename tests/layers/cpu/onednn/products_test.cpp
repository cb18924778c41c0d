#include "layers/cpu/onednn/products.h"

#include <gtest/gtest.h>
#include <vector>

#include "layers/conv.h"
#include "tests/layers/cpu/windows.h"

namespace cnn::layers::cpu {
namespace {

using tests::square;

KernelTable table_of_products(const ProductRule& rule) {
  KernelTable table;
  add_product_rows(table, effective_isa(), rule);
  return table;
}

TensorDesc image(const Shape& shape, DataType type = DataType::f32) {
  return {.shape = shape, .type = type, .layout = Layout::nhwc};
}

TEST(ProductRows, GiveWeightsOneOrderInAllDirections) {
  const KernelTable table = table_of_products(measured_product_rule);
  for (const std::int64_t stride : {1, 2}) {
    const ConvAttributes a{.window = square(1, stride, 0)};
    const TensorDesc x = image({2, 64, 14 * stride, 14 * stride}), y = image({2, 32, 14, 14});
    const TensorDesc w{.shape = {32, 64, 1, 1}};
    const auto forward = table.describe(Conv2d(a), {{x, w}, {y}});
    const auto data = table.describe(Conv2dBackwardData(a, x.shape), {{y, w}, {x}});
    const auto weights = table.describe(Conv2dBackwardWeights(a, w.shape), {{x, y}, {w}});
    ASSERT_TRUE(forward && data && weights);
    EXPECT_EQ(forward->in[1], weights->out[0]);
    EXPECT_EQ(data->in[1], weights->out[0]);
    EXPECT_NE(weights->out[0], w) << "the order is blocked";
  }
}

TEST(ProductRows, TakeBf16ImagesInBlocksWithWeightsInF32) {
  KernelTable table;
  add_product_rows(table, effective_isa(), {}, {.type = DataType::bf16, .layout = Layout::nchw16c});
  const ConvAttributes a{.window = square(1, 1, 0), .bias = true, .residual = true, .relu = true};
  const TensorDesc x = image({2, 64, 14, 14}, DataType::bf16),
                   y = image({2, 32, 14, 14}, DataType::bf16);
  const TensorDesc w{.shape = {32, 64, 1, 1}}, bias{.shape = {32}};
  const auto forward = table.describe(Conv2d(a), {{x, w, bias, y}, {y}});
  const auto data = table.describe(Conv2dBackwardData(a, x.shape), {{y, w}, {x}});
  const auto weights = table.describe(Conv2dBackwardWeights(a, w.shape), {{x, y}, {w, bias}});
  ASSERT_TRUE(forward && data && weights);
  for (const TensorDesc& of : {forward->in[0], forward->in[3], forward->out[0], data->in[0],
                               data->out[0], weights->in[0], weights->in[1]}) {
    EXPECT_EQ(of.type, DataType::bf16);
    EXPECT_EQ(of.layout, Layout::nchw16c);
  }
  EXPECT_EQ(weights->out[0].type, DataType::f32);
  EXPECT_EQ(forward->in[1], weights->out[0]);
  EXPECT_EQ(data->in[1], weights->out[0]);
  EXPECT_EQ(forward->in[2], bias);
  const TensorDesc x32 = image(x.shape), y32 = image(y.shape);
  EXPECT_FALSE(table.describe(Conv2d({.window = square(1, 1, 0)}), {{x32, w}, {y32}}));
}

TEST(ProductRows, ServeWhatReducesChannelsOfLargeImagesByTheRuleOfAvx512) {
  KernelTable table;
  add_product_conv_rows(table, effective_isa(), reducing_product_rule, {.layout = Layout::nchw16c});
  const auto serves = [&](std::int64_t from, std::int64_t to, std::int64_t side,
                          std::int64_t stride) {
    const ConvAttributes a{.window = square(1, stride, 0)};
    const std::int64_t reads = side * stride;
    const TensorDesc x = image({2, from, reads, reads}), y = image({2, to, side, side});
    const TensorDesc back{.shape = {from, to, 1, 1}}, w{.shape = {to, from, 1, 1}};
    // The data gradient of a convolution in the other direction sums over the same channels.
    const bool data =
        table
            .describe(Conv2dBackwardData(a, {2, to, reads, reads}),
                      {{image({2, from, side, side}), back}, {image({2, to, reads, reads})}})
            .has_value();
    EXPECT_EQ(table.describe(Conv2d(a), {{x, w}, {y}}).has_value(), data);
    EXPECT_FALSE(table.describe(Conv2dBackwardWeights(a, w.shape), {{x, y}, {w}}));
    return data;
  };
  EXPECT_TRUE(serves(256, 64, 28, 1));
  EXPECT_TRUE(serves(256, 128, 28, 1));
  EXPECT_FALSE(serves(240, 128, 28, 1)) << "sums over less than twice the channels";
  EXPECT_FALSE(serves(288, 144, 28, 1)) << "more than 128 results";
  EXPECT_FALSE(serves(256, 64, 27, 1)) << "small images";
  EXPECT_FALSE(serves(256, 64, 28, 2)) << "a stride";
}

TEST(ProductRows, ServeNoOtherConvolutions) {
  const KernelTable table = table_of_products({});
  const TensorDesc x = image({2, 64, 14, 14}), y = image({2, 32, 14, 14});
  const auto serves = [&](const ConvAttributes& a, const TensorDesc& from, const TensorDesc& to) {
    std::vector<TensorDesc> in{
        from, {.shape = {to.shape[1], from.shape[1], a.window.kernel_h, a.window.kernel_w}}};
    if (a.bias) {
      in.push_back({.shape = {to.shape[1]}});
    }
    return table.describe(Conv2d(a), {in, {to}}).has_value();
  };
  EXPECT_TRUE(serves({.window = square(1, 1, 0)}, x, y));
  EXPECT_FALSE(serves({.window = square(3, 1, 1)}, x, y));
  EXPECT_FALSE(serves({.window = square(1, 1, 0)}, x, image({2, 33, 14, 14})));
  EXPECT_TRUE(serves({.window = square(1, 1, 0), .bias = true}, x, y));
  EXPECT_TRUE(serves({.window = square(1, 1, 0), .relu = true}, x, y));
  EXPECT_FALSE(serves({.window = square(1, 1, 0)}, image(x.shape, DataType::bf16),
                      image(y.shape, DataType::bf16)));
}

TEST(ProductRows, KeepToTheLimitsOfTheRule) {
  const KernelTable table =
      table_of_products({.min_channels = 32, .min_pixels = 9, .max_pixels = 16});
  const auto serves_gradient = [&](std::int64_t channels, std::int64_t side, std::int64_t stride) {
    const TensorDesc x = image({1, channels, side * stride, side * stride});
    const TensorDesc y = image({1, 64, side, side}), w{.shape = {64, channels, 1, 1}};
    const Conv2dBackwardWeights op({.window = square(1, stride, 0)}, w.shape);
    return table.describe(op, {{x, y}, {w}}).has_value();
  };
  EXPECT_TRUE(serves_gradient(32, 3, 1));
  EXPECT_FALSE(serves_gradient(16, 3, 1)) << "few channels";
  EXPECT_FALSE(serves_gradient(32, 2, 1)) << "few pixels";
  EXPECT_FALSE(serves_gradient(32, 4, 1)) << "many pixels";
  EXPECT_TRUE(serves_gradient(32, 4, 2)) << "strides have no limit of pixels";
}

}  // namespace
}  // namespace cnn::layers::cpu
