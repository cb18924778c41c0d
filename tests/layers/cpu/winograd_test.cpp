#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <span>
#include <string>
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

KernelTable winograd_kernels(const Isa& isa, std::int64_t tile = 0) {
  KernelTable table;
  layers::cpu::add_winograd_rows(table, isa, tile);
  return table;
}

// The kernels with these loops, in bf16 too: as where no instruction multiplies it fast.
KernelTable winograd_kernels(const Loops& loops, std::int64_t tile = 0) {
  return winograd_kernels(layers::cpu::up_to(loops.name), tile);
}

struct Pads {
  std::int64_t top = 1, bottom = 1, left = 1, right = 1;
};

ConvAttributes attributes(const Pads& pads = {}) {
  ConvAttributes result;
  result.window = {.kernel_h = 3,
                   .kernel_w = 3,
                   .pad_top = pads.top,
                   .pad_bottom = pads.bottom,
                   .pad_left = pads.left,
                   .pad_right = pads.right};
  return result;
}

Signature forward_signature(const ConvAttributes& a, const Shape& x, std::int64_t filters,
                            DataType type = DataType::f32) {
  Signature result{.in = {{.shape = x, .type = type},
                          {.shape = {filters, x[1], a.window.kernel_h, a.window.kernel_w}}},
                   .out = {}};
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

constexpr Isa avx2{.avx2 = true};  // where a test asks for no other

bool serves(const ConvAttributes& a, const Shape& x, std::int64_t filters, std::int64_t tile = 0) {
  const KernelTable table = winograd_kernels(avx2, tile);
  return table.describe(Conv2d(a), forward_signature(a, x, filters)).has_value();
}

// A form of the images, and the outputs on a side of a tile.
using FormAndTile = std::tuple<Form, std::int64_t>;

class Winograd : public testing::TestWithParam<FormAndTile> {
 protected:
  static const Form& form() { return std::get<0>(GetParam()); }
  static KernelTable kernels() { return winograd_kernels(*form().loops, std::get<1>(GetParam())); }

  // Runs the op's kernel and its plain loops on the same operands; those of 3 x 3 are weights.
  void expect_like_loops(const Op& op, const std::vector<const HostTensor*>& in) const {
    Signature asked;
    std::vector<TensorView> views;
    for (const HostTensor* tensor : in) {
      asked.in.push_back(as_asked(tensor->desc()));
      views.push_back(tensor->view());
    }
    for (const TensorDesc& desc : op.infer(asked.in)) {
      asked.out.push_back(as_asked(desc));
    }
    const auto run = run_op(kernels(), op, asked, views);
    ASSERT_TRUE(run.has_value()) << "no kernel for " << op.name();
    EXPECT_EQ(run->signature.in, asked.in);
    EXPECT_EQ(run->signature.out, asked.out);
    std::vector<HostTensor> expected;
    std::vector<TensorView> before, out;
    for (const HostTensor& tensor : run->before) {
      before.push_back(tensor.view());
    }
    for (const TensorDesc& desc : asked.out) {
      expected.emplace_back(plain(desc));
    }
    for (const HostTensor& tensor : expected) {
      out.push_back(tensor.view());
    }
    op.reference(before, out);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const DataType type = asked.out[i].type;
      round_to(type, out[i]);
      const double allowed = type == DataType::bf16 ? 0.01 : 1e-4;
      const auto text = difference(out[i], run->out[i].view(), allowed);
      EXPECT_FALSE(text) << op.name() << ", output " << i << ": " << *text;
    }
  }

 private:
  static TensorDesc as_asked(TensorDesc desc) {
    if (desc.shape.rank() == 4 && desc.shape[3] != 3) {
      desc.type = form().type;
      desc.layout = form().layout;
    }
    return desc;
  }
};

INSTANTIATE_TEST_SUITE_P(Cpu, Winograd,
                         testing::Combine(testing::ValuesIn(all_forms()),
                                          testing::Values<std::int64_t>(2, 4)),
                         [](const auto& of) {
                           return name_of(std::get<0>(of.param)) + "_by_" +
                                  std::to_string(std::get<1>(of.param));
                         });

TEST_P(Winograd, ConvolvesAsTheLoopsDoWithOddEdges) {
  const HostTensor x = draws({2, 32, 27, 29}, form().type, 1);
  const HostTensor w = draws({48, 32, 3, 3}, DataType::f32, 2);
  expect_like_loops(Conv2d(attributes()), {&x, &w});
}

TEST_P(Winograd, ConvolvesWithPaddingOfEveryKind) {
  const HostTensor x = draws({1, 32, 40, 40}, form().type, 3);
  const HostTensor w = draws({32, 32, 3, 3}, DataType::f32, 4);
  expect_like_loops(Conv2d(attributes({.top = 0, .bottom = 0, .left = 0, .right = 0})), {&x, &w});
  expect_like_loops(Conv2d(attributes({.top = 2, .bottom = 1, .left = 0, .right = 2})), {&x, &w});
}

TEST_P(Winograd, AddsBiasAndResidualAndCutsBelowZero) {
  ConvAttributes a = attributes();
  a.bias = a.residual = a.relu = true;
  const HostTensor x = draws({2, 64, 28, 28}, form().type, 5);
  const HostTensor w = draws({80, 64, 3, 3}, DataType::f32, 6);
  const HostTensor bias = draws({80}, DataType::f32, 7);
  const HostTensor residual = draws({2, 80, 28, 28}, form().type, 8);
  expect_like_loops(Conv2d(a), {&x, &w, &bias, &residual});
}

// A ReLU that made zero of NaN would hide that training has failed.
TEST_P(Winograd, KeepsNanBehindAReLU) {
  ConvAttributes a = attributes();
  a.relu = true;
  const HostTensor x = draws({2, 32, 28, 28}, form().type, 18);
  const HostTensor w = constant({32, 32, 3, 3}, std::numeric_limits<float>::quiet_NaN());
  const Signature asked = forward_signature(a, {2, 32, 28, 28}, 32, form().type);
  const std::array in{x.view(), w.view()};
  const auto run = run_op(kernels(), Conv2d(a), asked, in);
  for (const float y : run.value().out.front().view().as<float>()) {
    ASSERT_TRUE(std::isnan(y));
  }
}

TEST_P(Winograd, PassesGradientsToImages) {
  const ConvAttributes a = attributes({.top = 0, .bottom = 2, .left = 1, .right = 0});
  const Shape x{3, 48, 21, 22};
  const HostTensor dy = draws({3, 32, 21, 21}, form().type, 9);
  const HostTensor w = draws({32, 48, 3, 3}, DataType::f32, 10);
  expect_like_loops(Conv2dBackwardData(a, x), {&dy, &w});
}

TEST_P(Winograd, SumsGradientsOfWeightsAndBias) {
  ConvAttributes a = attributes();
  a.bias = true;
  const HostTensor x = draws({6, 112, 15, 14}, form().type, 11);  // two slabs of each
  const HostTensor dy = draws({6, 80, 15, 14}, form().type, 12);
  expect_like_loops(Conv2dBackwardWeights(a, {80, 112, 3, 3}), {&x, &dy});
}

TEST_P(Winograd, SumsGradientsInSeveralParts) {
  const HostTensor x = draws({1, 32, 96, 96}, form().type, 13);
  const HostTensor dy = draws({1, 32, 96, 96}, form().type, 14);
  expect_like_loops(Conv2dBackwardWeights(attributes(), {32, 32, 3, 3}), {&x, &dy});
}

// Bits of what a kernel makes with that many threads.
std::vector<std::byte> bits(const KernelTable& table, const Op& op, const Signature& asked,
                            std::span<const TensorView> in, int threads) {
  const Threads team(threads);
  const std::optional<OpRun> run = run_op(table, op, asked, in);
  const TensorView out = run.value().out.front().view();
  return {out.data, out.data + out.desc.bytes()};
}

// Root mean square of the differences from exact sums, over that of the sums.
double error(const HostTensor& got, const HostTensor& exact) {
  double differences = 0, squares = 0;
  const std::span<const float> a = got.view().as<float>(), b = exact.view().as<float>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    differences += (a[i] - b[i]) * static_cast<double>(a[i] - b[i]);
    squares += b[i] * static_cast<double>(b[i]);
  }
  return std::sqrt(differences / squares);
}

// The points of F(4x4, 3x3) were chosen for this: 0, 1, -1, 2 and -2 are 3 times worse.
TEST(WinogradAccuracy, IsNearThatOfSumsInFloat) {
  const HostTensor x = draws({3, 128, 24, 24}, DataType::f32, 19);
  const HostTensor w = draws({32, 128, 3, 3}, DataType::f32, 20);
  const Signature asked = forward_signature(attributes(), {3, 128, 24, 24}, 32);
  const std::array in{x.view(), w.view()};
  HostTensor exact(plain(asked.out.front()));
  const std::array out{exact.view()};
  Conv2d(attributes()).reference(in, out);
  for (const Loops* loops : runnable_loops()) {
    const auto by_2 = run_op(winograd_kernels(*loops, 2), Conv2d(attributes()), asked, in);
    const auto by_4 = run_op(winograd_kernels(*loops, 4), Conv2d(attributes()), asked, in);
    EXPECT_LT(error(by_2.value().out.front(), exact), 4e-7);
    EXPECT_LT(error(by_4.value().out.front(), exact), 1.2e-6);
  }
}

TEST(WinogradThreads, DoNotChangeABit) {
  const ConvAttributes a = attributes();
  const HostTensor x = draws({2, 64, 28, 28}, DataType::f32, 15);
  const HostTensor w = draws({160, 64, 3, 3}, DataType::f32, 16);
  const HostTensor dy = draws({2, 160, 28, 28}, DataType::f32, 17);
  const std::array forward{x.view(), w.view()}, backward{x.view(), dy.view()};
  std::vector<KernelTable> tables;
  for (const Loops* loops : runnable_loops()) {
    tables.push_back(winograd_kernels(*loops, 2));
    tables.push_back(winograd_kernels(*loops, 4));
  }
  for (const KernelTable& table : tables) {
    const Signature conv = forward_signature(a, {2, 64, 28, 28}, 160);
    const Signature gradient = gradient_signature(a, {2, 64, 28, 28}, 160);
    const Conv2dBackwardWeights weights(a, {160, 64, 3, 3});
    const auto one = bits(table, Conv2d(a), conv, forward, 1);
    const auto one_gradient = bits(table, weights, gradient, backward, 1);
    for (const int threads : {2, 3, 16}) {
      EXPECT_EQ(bits(table, Conv2d(a), conv, forward, threads), one);
      EXPECT_EQ(bits(table, weights, gradient, backward, threads), one_gradient);
    }
  }
}

TEST(WinogradRow, ServesWindowsOfThreeWithStepOne) {
  EXPECT_TRUE(serves(attributes(), {2, 64, 56, 56}, 64));
  ConvAttributes wide = attributes();
  wide.window.kernel_w = 5;
  EXPECT_FALSE(serves(wide, {2, 64, 56, 56}, 64));
  ConvAttributes halving = attributes();
  halving.window.stride_h = halving.window.stride_w = 2;
  EXPECT_FALSE(serves(halving, {2, 64, 56, 56}, 64));
  ConvAttributes depthwise = attributes();
  depthwise.depthwise = true;
  Signature asked = forward_signature(attributes(), {2, 64, 56, 56}, 64);
  asked.in[1].shape[1] = 1;
  const KernelTable table = winograd_kernels(avx2);
  EXPECT_FALSE(table.describe(Conv2d(depthwise), asked));
}

TEST(WinogradRow, LeavesToOthersWhatDoesNotPay) {
  EXPECT_FALSE(serves(attributes(), {2, 24, 56, 56}, 64));       // half a block of channels
  EXPECT_FALSE(serves(attributes(), {2, 16, 56, 56}, 64));       // too few
  EXPECT_FALSE(serves(attributes(), {1, 64, 14, 14}, 64));       // too few tiles for the weights
  EXPECT_FALSE(serves(attributes(), {64, 512, 7, 7}, 512, 2));   // too much edge
  EXPECT_TRUE(serves(attributes(), {64, 512, 13, 13}, 512, 2));  // not so
  EXPECT_TRUE(serves(attributes(), {64, 512, 7, 7}, 512));       // in tiles of 4 x 4
  EXPECT_FALSE(serves(attributes(), {64, 512, 5, 5}, 512));
}

TEST(WinogradRow, TakesGradientsOfSmallImagesToo) {
  const KernelTable table = winograd_kernels(avx2);
  const Conv2dBackwardWeights op(attributes(), {512, 512, 3, 3});
  EXPECT_TRUE(table.describe(op, gradient_signature(attributes(), {64, 512, 7, 7}, 512)));
}

// 10 x 10 outputs are 25 tiles of 16 products or 9 tiles of 36; 14 x 14 are 49 or 16.
TEST(WinogradRow, TakesTilesThatNeedFewerOperations) {
  const auto flops = [&](std::int64_t side, std::int64_t tile) {
    const Signature asked = forward_signature(attributes(), {64, 64, side, side}, 64);
    return winograd_kernels(avx2, tile).describe(Conv2d(attributes()), asked).value().flops.value();
  };
  for (const std::int64_t side : {14, 28, 31, 35, 56}) {
    EXPECT_EQ(flops(side, 0), std::min(flops(side, 2), flops(side, 4))) << side;
    EXPECT_EQ(flops(side, 0), flops(side, 4)) << side;
  }
  EXPECT_EQ(flops(10, 0), std::min(flops(10, 2), flops(10, 4)));
}

TEST(WinogradRow, SaysHowFewOperationsItNeeds) {
  const Signature asked = forward_signature(attributes(), {2, 32, 28, 28}, 64);
  const auto flops = [&](std::int64_t tile) {
    return winograd_kernels(avx2, tile).describe(Conv2d(attributes()), asked).value().flops.value();
  };
  // Twice 14 x 14 tiles of 16 products of 32 x 64 channels, 32 additions a channel in and 24 out
  EXPECT_EQ(flops(2), 392.0 * (2 * 16 * 32 * 64 + 32 * 32 + 24 * 64));
  // Twice 7 x 7 tiles of 36 products, 12 lines of 22 operations a channel in and 10 of 16 out
  EXPECT_EQ(flops(4), 98.0 * (2 * 36 * 32 * 64 + 264 * 32 + 160 * 64));
  EXPECT_EQ(Conv2d(attributes()).flops(asked.in), 2.0 * 2 * 28 * 28 * 9 * 32 * 64);
}

TEST(WinogradRow, IsLeftOutWhereNotChosen) {
  const Signature asked = forward_signature(attributes(), {1, 32, 28, 28}, 64);
  for (const bool chosen : {true, false}) {
    KernelTable table;
    add_reference(table);
    layers::cpu::add_kernels(table, {.winograd = chosen});
    EXPECT_EQ(table.describe(Conv2d(attributes()), asked).value().flops.has_value(), chosen);
  }
}

}  // namespace
}  // namespace cnn::tests
