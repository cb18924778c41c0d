#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "layers/conv.h"
#include "layers/cpu/isa.h"
#include "layers/cpu/kernels.h"
#include "layers/cpu/rows.h"
#include "runtime/cpu/reference_kernel.h"
#include "tests/layers/cpu/own_kernels.h"
#include "tests/support/numeric.h"
#include "tests/support/op_runner.h"

namespace cnn::tests {
namespace {

using layers::Conv2d;
using layers::Conv2dBackwardData;
using layers::Conv2dBackwardWeights;
using layers::ConvAttributes;
using layers::cpu::Isa;
using layers::cpu::Loops;
using layers::cpu::WinogradForm;

constexpr WinogradForm by_2{2, 2, 3, 3}, by_4{4, 4, 3, 3}, by_2_of_5{2, 2, 5, 5},
    by_4_of_5{4, 4, 5, 5};

KernelTable winograd_kernels(const Isa& isa, const std::optional<WinogradForm>& only = {}) {
  KernelTable table;
  layers::cpu::add_winograd_rows(table, isa, only);
  return table;
}

// Returns the kernels with these loops. They include bf16, as on processors without fast bf16
// products.
KernelTable winograd_kernels(const Loops& loops, const std::optional<WinogradForm>& only = {}) {
  return winograd_kernels(layers::cpu::up_to(loops.name), only);
}

struct Pads {
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;
};

ConvAttributes attributes_with(const WinogradForm& form, const Pads& pads) {
  ConvAttributes result;
  result.window = {.kernel_h = form.taps_h,
                   .kernel_w = form.taps_w,
                   .pad_top = pads.top,
                   .pad_bottom = pads.bottom,
                   .pad_left = pads.left,
                   .pad_right = pads.right};
  return result;
}

// Returns attributes whose padding makes outputs as large as the input.
ConvAttributes attributes(const WinogradForm& form = by_4) {
  return attributes_with(form, {.top = form.taps_h / 2,
                                .bottom = form.taps_h / 2,
                                .left = form.taps_w / 2,
                                .right = form.taps_w / 2});
}

Shape weights_shape(std::int64_t out, std::int64_t in, const WinogradForm& form = by_4) {
  return {out, in, form.taps_h, form.taps_w};
}

Signature forward_signature(const ConvAttributes& a, const Shape& x, std::int64_t filters,
                            DataType type = DataType::f32) {
  Signature result{.in = {{.shape = x, .type = type},
                          {.shape = {filters, x[1], a.window.kernel_h, a.window.kernel_w}}},
                   .out = {}};
  if (a.bias) {
    result.in.push_back({.shape = {filters}});
  }
  result.out = Conv2d(a).infer(result.in);
  for (TensorDesc* image : {&result.in[0], &result.out[0]}) {
    image->layout = Layout::nchw16c;
  }
  return result;
}

Signature gradient_signature(const ConvAttributes& a, const Shape& x, std::int64_t filters) {
  const Signature forward = forward_signature(a, x, filters);
  return {.in = {forward.in[0], forward.out[0]}, .out = {forward.in[1]}};
}

constexpr Isa avx2{.avx2 = true};  // the default of the tests below

bool serves(const ConvAttributes& a, const Shape& x, std::int64_t filters,
            const std::optional<WinogradForm>& only = {}) {
  const KernelTable table = winograd_kernels(avx2, only);
  return table.describe(Conv2d(a), forward_signature(a, x, filters)).has_value();
}

// A form of the images and a form of the Winograd algorithm.
using Forms = std::tuple<Form, WinogradForm>;

class Winograd : public testing::TestWithParam<Forms> {
 protected:
  static DataType type() { return std::get<0>(GetParam()).type; }
  static const WinogradForm& form() { return std::get<1>(GetParam()); }
  // With AVX2 a slab of a weight gradient has up to 192 output channels, otherwise 64.
  static bool slab_is_wide() {
    return std::string_view(std::get<0>(GetParam()).loops->name) == "avx2";
  }
  static KernelTable kernels() { return winograd_kernels(*std::get<0>(GetParam()).loops, form()); }

  // Runs the op's kernel and its reference loops on the same operands; tensors of the window's size
  // are weights.
  void expect_like_loops(const Op& op, const std::vector<const HostTensor*>& in) const {
    Signature request;
    std::vector<TensorView> views;
    for (const HostTensor* tensor : in) {
      request.in.push_back(as_requested(tensor->desc()));
      views.push_back(tensor->view());
    }
    for (const TensorDesc& desc : op.infer(request.in)) {
      request.out.push_back(as_requested(desc));
    }
    const auto run = run_op(kernels(), op, request, views);
    ASSERT_TRUE(run.has_value()) << "no kernel for " << op.name();
    EXPECT_EQ(run->signature.in, request.in);
    EXPECT_EQ(run->signature.out, request.out);
    std::vector<HostTensor> expected;
    std::vector<TensorView> before, out;
    for (const HostTensor& tensor : run->before) {
      before.push_back(tensor.view());
    }
    for (const TensorDesc& desc : request.out) {
      expected.emplace_back(plain(desc));
    }
    for (const HostTensor& tensor : expected) {
      out.push_back(tensor.view());
    }
    op.reference(before, out);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const DataType type = request.out[i].type;
      round_to(type, out[i]);
      const double allowed = type == DataType::bf16 ? 0.01 : 1e-4;
      const auto text = difference(out[i], run->out[i].view(), allowed);
      EXPECT_FALSE(text) << op.name() << ", output " << i << ": " << *text;
    }
  }

 private:
  static TensorDesc as_requested(TensorDesc desc) {
    if (desc.shape.rank() == 4 &&
        (desc.shape[2] != form().taps_h || desc.shape[3] != form().taps_w)) {
      desc.type = type();
      desc.layout = std::get<0>(GetParam()).layout;
    }
    return desc;
  }
};

std::string text_of(const WinogradForm& form) {
  return std::to_string(form.tile_h) + "x" + std::to_string(form.tile_w) + "_of_" +
         std::to_string(form.taps_h) + "x" + std::to_string(form.taps_w);
}

// Types and layouts do not depend on the algorithm's form. One form is tested with all of them, the
// other forms with one each. Where products of bf16 are fast, none of them runs in bf16.
std::vector<Forms> forms_to_test() {
  std::vector<Forms> result;
  for (const Form& images : all_forms()) {
    if (images.type == DataType::bf16 &&
        layers::cpu::multiplies_bf16_fast(layers::cpu::up_to(images.loops->name))) {
      continue;
    }
    for (const WinogradForm& form : layers::cpu::winograd_forms) {
      const bool plain_type = images.type == DataType::f32, blocks = images.layout != Layout::nhwc;
      if (form == by_4 || plain_type == blocks) {
        result.emplace_back(images, form);
      }
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Cpu, Winograd, testing::ValuesIn(forms_to_test()), [](const auto& info) {
  return name_of(std::get<0>(info.param)) + "_" + text_of(std::get<1>(info.param));
});

TEST_P(Winograd, ConvolvesAsTheLoopsDoWithOddEdges) {
  const HostTensor x = draws({2, 32, 27, 29}, type(), 1);
  const HostTensor w = draws(weights_shape(48, 32, form()), DataType::f32, 2);
  expect_like_loops(Conv2d(attributes(form())), {&x, &w});
}

TEST_P(Winograd, ConvolvesWithPaddingOfEveryKind) {
  const HostTensor x = draws({1, 32, 40, 40}, type(), 3);
  const HostTensor w = draws(weights_shape(32, 32, form()), DataType::f32, 4);
  expect_like_loops(Conv2d(attributes_with(form(), {})), {&x, &w});
  const Pads uneven{
      .top = form().taps_h - 1, .bottom = form().taps_h / 2, .left = 0, .right = form().taps_w - 1};
  expect_like_loops(Conv2d(attributes_with(form(), uneven)), {&x, &w});
}

TEST_P(Winograd, AddsBiasAndResidualAndCutsBelowZero) {
  ConvAttributes a = attributes(form());
  a.bias = a.residual = a.relu = true;
  const HostTensor x = draws({2, 48, 28, 28}, type(), 5);
  const HostTensor w = draws(weights_shape(80, 48, form()), DataType::f32, 6);
  const HostTensor bias = draws({80}, DataType::f32, 7);
  const HostTensor residual = draws({2, 80, 28, 28}, type(), 8);
  expect_like_loops(Conv2d(a), {&x, &w, &bias, &residual});
}

// A ReLU that turned NaN into zero would hide that training has diverged.
TEST_P(Winograd, KeepsNanBehindAReLU) {
  ConvAttributes a = attributes(form());
  a.relu = true;
  const Shape shape{3, 32, 28, 28};
  const HostTensor x = draws(shape, type(), 18);
  const HostTensor w =
      constant(weights_shape(32, 32, form()), std::numeric_limits<float>::quiet_NaN());
  const Signature request = forward_signature(a, shape, 32, type());
  const std::array in{x.view(), w.view()};
  const auto run = run_op(kernels(), Conv2d(a), request, in);
  for (const float y : run.value().out.front().view().as<float>()) {
    ASSERT_TRUE(std::isnan(y));
  }
}

TEST_P(Winograd, PassesGradientsToImages) {
  const Pads pads{.bottom = form().taps_h - 1, .left = form().taps_w / 2};
  const Shape x{5, 48, 21, 22};
  const std::int64_t wide = 22 + form().taps_w / 2 - (form().taps_w - 1);
  const HostTensor dy = draws({5, 32, 21, wide}, type(), 9);
  const HostTensor w = draws(weights_shape(32, 48, form()), DataType::f32, 10);
  expect_like_loops(Conv2dBackwardData(attributes_with(form(), pads), x), {&dy, &w});
}

TEST_P(Winograd, SumsGradientsOfWeightsAndBias) {
  ConvAttributes a = attributes(form());
  a.bias = true;
  // Two slabs of input and of output channels.
  const std::int64_t in = 144, out = slab_is_wide() ? 208 : 80;
  // The fewest images for which the algorithm pays and whose tiles are more than one block.
  const std::int64_t images = form() == by_2_of_5 ? 3 : 7;
  const HostTensor x = draws({images, in, 15, 14}, type(), 11);
  const HostTensor dy = draws({images, out, 15, 14}, type(), 12);
  expect_like_loops(Conv2dBackwardWeights(a, weights_shape(out, in, form())), {&x, &dy});
}

TEST_P(Winograd, SumsGradientsInSeveralParts) {
  const HostTensor x = draws({2, 32, 96, 64}, type(), 13);
  const HostTensor dy = draws({2, 32, 96, 64}, type(), 14);
  const Shape weights = weights_shape(32, 32, form());
  expect_like_loops(Conv2dBackwardWeights(attributes(form()), weights), {&x, &dy});
}

// Returns the bits of a kernel's result with that many threads.
std::vector<std::byte> bits(const KernelTable& table, const Op& op, const Signature& request,
                            std::span<const TensorView> in, int threads) {
  const Threads team(threads);
  const std::optional<OpRun> run = run_op(table, op, request, in);
  const TensorView out = run.value().out.front().view();
  return {out.data, out.data + out.desc.bytes()};
}

// Returns the root mean square of the error, relative to that of the exact sums.
double error(const HostTensor& got, const HostTensor& exact) {
  double differences = 0, squares = 0;
  const std::span<const float> a = got.view().as<float>(), b = exact.view().as<float>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    differences += (a[i] - b[i]) * static_cast<double>(a[i] - b[i]);
    squares += b[i] * static_cast<double>(b[i]);
  }
  return std::sqrt(differences / squares);
}

// The interpolation points were chosen for accuracy: for F(4x4, 3x3) the points 0, 1, -1, 2 and -2
// are 3 times worse. F(4x4, 5x5) and F(4, 7) need points that are farther apart, which cost
// accuracy. (Long: other tests run the same loops under sanitizers.)
TEST(LongWinogradAccuracy, IsNearThatOfSumsInFloat) {
  const HostTensor x = draws({4, 128, 24, 24}, DataType::f32, 19);
  for (const WinogradForm& form : layers::cpu::winograd_forms) {
    const bool is_4_of_7 = form.outputs() == 4 && form.taps() == 7;
    const double allowed = form == by_2        ? 4e-7
                           : form == by_4_of_5 ? 5e-6
                           : is_4_of_7         ? 3e-6
                                               : 1.4e-6;
    const HostTensor w = draws(weights_shape(32, 128, form), DataType::f32, 20);
    const Conv2d op(attributes(form));
    const Signature request = forward_signature(op.attributes, {4, 128, 24, 24}, 32);
    const std::array in{x.view(), w.view()};
    HostTensor exact(plain(request.out.front()));
    const std::array out{exact.view()};
    op.reference(in, out);
    for (const Loops* loops : runnable_loops()) {
      const auto run = run_op(winograd_kernels(*loops, form), op, request, in);
      EXPECT_LT(error(run.value().out.front(), exact), allowed)
          << text_of(form) << " " << loops->name;
    }
  }
}

TEST(WinogradThreads, DoNotChangeABit) {
  const Shape shape{2, 32, 28, 28};
  const HostTensor x = draws(shape, DataType::f32, 15);
  const HostTensor dy = draws({2, 160, 28, 28}, DataType::f32, 17);
  for (const WinogradForm& form : layers::cpu::winograd_forms) {
    const ConvAttributes a = attributes(form);
    const HostTensor w = draws(weights_shape(160, 32, form), DataType::f32, 16);
    const std::array forward{x.view(), w.view()}, backward{x.view(), dy.view()};
    const Signature conv = forward_signature(a, shape, 160);
    const Signature gradient = gradient_signature(a, shape, 160);
    const Conv2dBackwardWeights weights(a, weights_shape(160, 32, form));
    for (const Loops* loops : runnable_loops()) {
      const KernelTable table = winograd_kernels(*loops, form);
      const auto one = bits(table, Conv2d(a), conv, forward, 1);
      const auto one_gradient = bits(table, weights, gradient, backward, 1);
      for (const int threads : {2, 3, 16}) {
        EXPECT_EQ(bits(table, Conv2d(a), conv, forward, threads), one) << text_of(form);
        EXPECT_EQ(bits(table, weights, gradient, backward, threads), one_gradient);
      }
    }
  }
}

TEST(WinogradRow, ServesWindowsThatThereAreFormsForWithStepOne) {
  for (const WinogradForm& form : layers::cpu::winograd_forms) {
    EXPECT_TRUE(serves(attributes(form), {2, 64, 56, 56}, 64)) << text_of(form);
  }
  ConvAttributes wide = attributes();
  wide.window.kernel_w = 5;
  EXPECT_FALSE(serves(wide, {2, 64, 56, 56}, 64));
  ConvAttributes halving = attributes();
  halving.window.stride_h = halving.window.stride_w = 2;
  EXPECT_FALSE(serves(halving, {2, 64, 56, 56}, 64));
  ConvAttributes depthwise = attributes();
  depthwise.depthwise = true;
  Signature request = forward_signature(attributes(), {2, 64, 56, 56}, 64);
  request.in[1].shape[1] = 1;
  const KernelTable table = winograd_kernels(avx2);
  EXPECT_FALSE(table.describe(Conv2d(depthwise), request));
}

TEST(WinogradRow, LeavesToOthersWhatDoesNotPay) {
  EXPECT_FALSE(serves(attributes(), {2, 24, 56, 56}, 64));  // half a block of channels
  EXPECT_FALSE(serves(attributes(), {2, 16, 56, 56}, 64));  // too few channels
  EXPECT_FALSE(serves(attributes(), {1, 64, 14, 14}, 64));  // too few tiles for the weights
  // Too much of the tiles is padding.
  EXPECT_FALSE(serves(attributes(), {64, 512, 7, 7}, 512, by_2));
  EXPECT_TRUE(serves(attributes(), {64, 512, 13, 13}, 512, by_2));  // here it is little
  EXPECT_TRUE(serves(attributes(), {64, 512, 7, 7}, 512));          // fewer tiles of 4 x 4
  EXPECT_FALSE(serves(attributes(), {64, 512, 5, 5}, 512));
}

TEST(WinogradRow, TakesGradientsOfSmallImagesToo) {
  const KernelTable table = winograd_kernels(avx2);
  const Conv2dBackwardWeights op(attributes(), {512, 512, 3, 3});
  const auto is_taken = [&](std::int64_t images) {
    return table.describe(op, gradient_signature(attributes(), {images, 512, 7, 7}, 512))
        .has_value();
  };
  EXPECT_TRUE(is_taken(8));
  EXPECT_FALSE(is_taken(4));  // too few tiles for the weights
}

// Few tiles stay in a cache while one part of the weights after another is transformed; more tiles
// read transformed weights from memory.
TEST(WinogradRow, TakesConvolutionsOfFewTilesAndManyChannels) {
  EXPECT_TRUE(serves(attributes(), {8, 512, 7, 7}, 512));
  EXPECT_FALSE(serves(attributes(), {4, 512, 7, 7}, 512));  // too few tiles for the weights
  EXPECT_FALSE(serves(attributes(), {8, 48, 7, 7}, 512));   // too few channels
  EXPECT_FALSE(serves(attributes(), {8, 512, 7, 7}, 48));
  EXPECT_TRUE(serves(attributes(), {32, 512, 6, 6}, 512, by_4));   // 128 tiles
  EXPECT_FALSE(serves(attributes(), {33, 512, 6, 6}, 512, by_4));  // 132 tiles, read from memory
}

// Rounding errors of F(4, 7) are too large before a batch norm in training. A convolution that such
// a norm follows has no bias.
TEST(WinogradRow, TakesTheRoughestFormOnlyWhereThereIsABias) {
  const Shape x{8, 192, 17, 17};
  const auto flops = [&](const ConvAttributes& a, const std::optional<WinogradForm>& only) {
    return winograd_kernels(avx2, only)
        .describe(Conv2d(a), forward_signature(a, x, 192))
        .value()
        .flops.value();
  };
  constexpr WinogradForm by_2_of_7{1, 2, 1, 7}, by_4_of_7{1, 4, 1, 7};
  ConvAttributes a = attributes(by_4_of_7);
  EXPECT_LT(flops(a, by_4_of_7), flops(a, by_2_of_7));
  EXPECT_EQ(flops(a, {}), flops(a, by_2_of_7));
  KernelTable candidate;  // tuning must not choose it there, either
  layers::cpu::add_winograd_candidate(candidate, avx2, by_4_of_7);
  EXPECT_FALSE(candidate.describe(Conv2d(a), forward_signature(a, x, 192)));
  a.bias = true;
  EXPECT_EQ(flops(a, {}), flops(a, by_4_of_7));
  EXPECT_TRUE(candidate.describe(Conv2d(a), forward_signature(a, x, 192)));
}

// 10 x 10 outputs take 25 tiles of 16 products or 9 tiles of 36; 14 x 14 outputs take 49 or 16.
TEST(WinogradRow, TakesTilesThatNeedFewerOperations) {
  const auto flops = [&](std::int64_t side, const std::optional<WinogradForm>& only) {
    const Signature request = forward_signature(attributes(), {64, 64, side, side}, 64);
    return winograd_kernels(avx2, only)
        .describe(Conv2d(attributes()), request)
        .value()
        .flops.value();
  };
  for (const std::int64_t side : {14, 28, 31, 35, 56}) {
    EXPECT_EQ(flops(side, {}), std::min(flops(side, by_2), flops(side, by_4))) << side;
    EXPECT_EQ(flops(side, {}), flops(side, by_4)) << side;
  }
  EXPECT_EQ(flops(10, {}), std::min(flops(10, by_2), flops(10, by_4)));
}

TEST(WinogradRow, SaysHowFewOperationsItNeeds) {
  const Signature request = forward_signature(attributes(), {2, 32, 28, 28}, 64);
  const auto flops = [&](const WinogradForm& only) {
    return winograd_kernels(avx2, only)
        .describe(Conv2d(attributes()), request)
        .value()
        .flops.value();
  };
  // The batch of two has 2 * 14 x 14 tiles of 16 products for 32 x 64 channels. Each tile needs 32
  // additions per input channel and 24 per output channel.
  EXPECT_EQ(flops(by_2), 392.0 * (2 * 16 * 32 * 64 + 32 * 32 + 24 * 64));
  // The batch of two has 2 * 7 x 7 tiles of 36 products. Each needs 12 lines of 22 operations per
  // input channel and 10 lines of 16 per output channel.
  EXPECT_EQ(flops(by_4), 98.0 * (2 * 36 * 32 * 64 + 264 * 32 + 160 * 64));
  EXPECT_EQ(Conv2d(attributes()).flops(request.in), 2.0 * 2 * 28 * 28 * 9 * 32 * 64);
}

TEST(WinogradRow, IsLeftOutWhereNotChosen) {
  const Signature request = forward_signature(attributes(), {1, 32, 28, 28}, 64);
  for (const bool chosen : {true, false}) {
    KernelTable table;
    add_reference(table);
    layers::cpu::add_kernels(table, {.winograd = chosen});
    EXPECT_EQ(table.describe(Conv2d(attributes()), request).value().flops.has_value(), chosen);
  }
}

}  // namespace
}  // namespace cnn::tests
