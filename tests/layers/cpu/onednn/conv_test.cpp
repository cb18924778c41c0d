#include "layers/conv.h"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "layers/cpu/isa.h"
#include "layers/cpu/rows.h"
#include "tests/layers/cpu/run_op.h"
#include "tests/layers/cpu/windows.h"
#include "tests/support/op_runner.h"

namespace cnn::layers::cpu {
namespace {

using test::distance;
using test::random_values;
using test::Values;
using tests::square;

struct ConvCase {
  std::string name;
  Shape x;
  std::int64_t filters;
  Window window;
  bool depthwise = false;
};

std::vector<ConvCase> conv_cases() {
  return {
      {"resnet_first", {2, 3, 18, 18}, 64, {7, 7, 2, 2, 3, 2, 3, 2}},
      {"resnet_3x3", {2, 64, 9, 9}, 64, square(3, 1, 1)},
      {"resnet_expand", {2, 64, 7, 7}, 256, square(1, 1, 0)},
      {"resnet_reduce_stride", {2, 256, 8, 8}, 128, square(1, 2, 0)},
      {"resnet_3x3_stride_odd_padding", {2, 32, 10, 10}, 32, {3, 3, 2, 2, 0, 1, 0, 1}},
      {"one_pixel", {3, 48, 1, 1}, 32, square(1, 1, 0)},
      {"alexnet_first", {1, 3, 51, 51}, 64, square(11, 4, 0)},
      {"lenet_first", {2, 1, 12, 12}, 32, square(5, 1, 2)},
      {"vgg", {1, 64, 12, 12}, 128, square(3, 1, 1)},
      {"inception_1x7", {1, 48, 9, 9}, 64, {1, 7, 1, 1, 0, 0, 3, 3}},
      {"inception_7x1", {1, 48, 9, 9}, 64, {7, 1, 1, 1, 3, 3, 0, 0}},
      {"inception_5x5", {2, 48, 9, 9}, 64, square(5, 1, 2)},
      {"densenet_12", {2, 12, 8, 8}, 12, square(3, 1, 1)},
      {"densenet_24_to_12", {2, 24, 8, 8}, 12, square(3, 1, 1)},
      {"resnet_expand_large", {2, 64, 28, 28}, 256, square(1, 1, 0)},
      {"pointwise_three_blocks", {2, 64, 21, 20}, 48, square(1, 1, 0)},
      {"densenet_156_1x1", {2, 156, 5, 5}, 156, square(1, 1, 0)},
      {"cifar_16", {2, 16, 8, 8}, 16, square(3, 1, 1)},
      {"cifar_first", {2, 3, 8, 8}, 16, square(3, 1, 1)},
      {"odd_channels", {1, 17, 7, 5}, 33, square(3, 1, 1)},
      {"mobilenet_depthwise", {2, 32, 9, 9}, 32, square(3, 1, 1), true},
      {"mobilenet_depthwise_stride", {2, 96, 9, 9}, 96, {3, 3, 2, 2, 0, 1, 0, 1}, true},
      {"nasnet_depthwise_5x5", {2, 44, 9, 9}, 44, square(5, 1, 2), true},
      {"nasnet_depthwise_7x7_stride", {1, 33, 11, 11}, 33, square(7, 2, 3), true},
  };
}

Shape weights_shape(const ConvCase& c) {
  return {c.filters, c.depthwise ? 1 : c.x[1], c.window.kernel_h, c.window.kernel_w};
}

Shape output_shape(const ConvCase& c) {
  return {c.x[0], c.filters, c.window.output_h(c.x[2]), c.window.output_w(c.x[3])};
}

KernelTable table_of_convs() {
  KernelTable table;
  add_conv_rows(table);
  add_convert_rows(table);
  return table;
}

// f32 sums depend on the order of addition; bf16 rounds each result to 8 bits.
double tolerance(DataType type) { return type == DataType::bf16 ? 1.0 / 128 : 1e-5; }

using Parameter = std::tuple<ConvCase, Layout, DataType>;

class ConvDirections : public testing::TestWithParam<Parameter> {
 protected:
  const ConvCase& conv() const { return std::get<0>(GetParam()); }
  Layout image() const { return std::get<1>(GetParam()); }
  DataType type() const { return std::get<2>(GetParam()); }

  // Returns the weights as a convolution of this type reads them.
  Values weights() const {
    Values w = random_values(weights_shape(conv()), type(), 2);
    w.desc.type = DataType::f32;
    return w;
  }

  void expect_equal(const Op& op, const std::vector<Values>& in) const {
    const test::Ran ran = test::run_fast(table_, op, in, image());
    const std::vector<Values> expected = test::run_reference(op, in);
    ASSERT_EQ(ran.out.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LE(distance(ran.out[i], expected[i]), tolerance(type()))
          << "output " << i << " of " << to_string(ran.signature);
    }
  }

 private:
  KernelTable table_ = table_of_convs();
};

TEST_P(ConvDirections, ForwardEqualsTheReference) {
  const ConvAttributes a{.window = conv().window, .depthwise = conv().depthwise};
  expect_equal(Conv2d(a), {random_values(conv().x, type(), 1), weights()});
}

TEST_P(ConvDirections, ForwardWithTheWholeEpilogueEqualsTheReference) {
  const ConvAttributes a{.window = conv().window,
                         .depthwise = conv().depthwise,
                         .bias = true,
                         .residual = true,
                         .relu = true};
  expect_equal(Conv2d(a), {random_values(conv().x, type(), 1), weights(),
                           random_values({conv().filters}, DataType::f32, 3),
                           random_values(output_shape(conv()), type(), 4)});
}

TEST_P(ConvDirections, BackwardDataEqualsTheReference) {
  const ConvAttributes a{.window = conv().window, .depthwise = conv().depthwise};
  expect_equal(Conv2dBackwardData(a, conv().x),
               {random_values(output_shape(conv()), type(), 5), weights()});
}

TEST_P(ConvDirections, BackwardWeightsAndBiasEqualTheReference) {
  const ConvAttributes a{.window = conv().window, .depthwise = conv().depthwise, .bias = true};
  expect_equal(
      Conv2dBackwardWeights(a, weights_shape(conv())),
      {random_values(conv().x, type(), 1), random_values(output_shape(conv()), type(), 5)});
}

std::string name_of_case(const testing::TestParamInfo<Parameter>& info) {
  const auto& [conv, layout, type] = info.param;
  return conv.name + "_" + std::string(name_of(layout)) + "_" + std::string(name_of(type));
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvDirections,
                         testing::Combine(testing::ValuesIn(conv_cases()),
                                          testing::Values(Layout::nchw16c, Layout::nhwc),
                                          testing::Values(DataType::f32, DataType::bf16)),
                         name_of_case);

TEST(ConvPacking, ForwardAndWeightGradientShareAnOrderInF32) {
  if (!effective_isa().avx512) {
    GTEST_SKIP() << "only the AVX-512 kernels have this property";
  }
  const KernelTable table = table_of_convs();
  const ConvAttributes a{.window = square(3, 1, 1)};
  const TensorDesc image{.shape = {2, 64, 8, 8}, .layout = Layout::nchw16c};
  const TensorDesc w{.shape = {64, 64, 3, 3}};
  const auto forward = table.describe(Conv2d(a), {{image, w}, {image}});
  const auto backward = table.describe(Conv2dBackwardWeights(a, w.shape), {{image, image}, {w}});
  ASSERT_TRUE(forward && backward);
  EXPECT_EQ(forward->in[1].layout, Layout::packed);
  EXPECT_EQ(forward->in[1], backward->out[0]);
}

TEST(ConvPacking, WeightsOfBf16ConvolutionsAreAsTheyMultiplyAndTheirGradientsF32) {
  const KernelTable table = table_of_convs();
  const ConvAttributes a{.window = square(1, 1, 0)};
  const TensorDesc image{.shape = {2, 64, 8, 8}, .type = DataType::bf16, .layout = Layout::nchw16c};
  const TensorDesc w{.shape = {64, 64, 1, 1}};
  const auto forward = table.describe(Conv2d(a), {{image, w}, {image}});
  EXPECT_EQ(forward->in[0].type, DataType::bf16);
  EXPECT_EQ(forward->in[1].type, multiplies_bf16_fast() ? DataType::bf16 : DataType::f32);
  EXPECT_EQ(forward->out[0].type, DataType::bf16);
  const auto backward = table.describe(Conv2dBackwardWeights(a, w.shape), {{image, image}, {w}});
  EXPECT_EQ(backward->in[0].type, DataType::bf16);
  EXPECT_EQ(backward->out[0].type, DataType::f32);
}

TEST(ConvPacking, DescribingASpecAgainAnswersTheSame) {
  const KernelTable table = table_of_convs();
  const TensorDesc w{.shape = {5, 3, 1, 1}};
  for (const Layout x_layout : {Layout::nchw, Layout::nhwc, Layout::nchw16c}) {
    for (const Layout y_layout : {Layout::nchw, Layout::nhwc, Layout::nchw16c}) {
      const TensorDesc x{.shape = {1, 3, 7, 9}, .layout = x_layout};
      const TensorDesc y{.shape = {1, 5, 7, 9}, .layout = y_layout};
      const auto once = table.describe(Conv2d({}), {{x, w}, {y}});
      const auto twice = table.describe(Conv2d({}), {once->in, once->out});
      EXPECT_EQ(once->in, twice->in);
      EXPECT_EQ(once->out, twice->out);
      EXPECT_EQ(once->workspace, twice->workspace);
    }
  }
}

TEST(ConvKernel, OutlivesTheTableThatMadeIt) {
  const TensorDesc image{.shape = {1, 1, 2, 2}}, w{.shape = {1, 1, 1, 1}};
  std::unique_ptr<Kernel> kernel;
  KernelSpec spec;
  {
    const KernelTable table = table_of_convs();
    spec = *table.describe(Conv2d({}), {{image, w}, {image}});
    kernel = table.make(Conv2d({}), {spec.in, spec.out});
  }
  std::vector<tests::HostTensor> tensors;
  for (const TensorDesc& desc : {spec.in[0], spec.in[1], spec.out[0]}) {
    tensors.emplace_back(desc);
    std::memset(tensors.back().view().data, 0, desc.bytes());
  }
  const tests::HostTensor workspace(
      {.shape = {static_cast<std::int64_t>(spec.workspace)}, .type = DataType::u8});
  const Operands operands{{tensors[0].view(), tensors[1].view()},
                          {tensors[2].view()},
                          workspace.view().as<std::byte>()};
  tests::ImmediateStream stream;
  EXPECT_NO_THROW(kernel->run(stream, operands));
}

}  // namespace
}  // namespace cnn::layers::cpu
