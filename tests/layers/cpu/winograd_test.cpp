#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <span>
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

KernelTable winograd_kernels(const Isa& isa) {
  KernelTable table;
  layers::cpu::add_winograd_rows(table, isa);
  return table;
}

// The kernels with these loops, in bf16 too: as where no instruction multiplies it fast.
KernelTable winograd_kernels(const Loops& loops) {
  return winograd_kernels(layers::cpu::up_to(loops.name));
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

bool serves(const ConvAttributes& a, const Shape& x, std::int64_t filters) {
  const KernelTable table = winograd_kernels(avx2);
  return table.describe(Conv2d(a), forward_signature(a, x, filters)).has_value();
}

class Winograd : public testing::TestWithParam<Form> {
 protected:
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
    const auto run = run_op(winograd_kernels(*GetParam().loops), op, asked, views);
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
      desc.type = GetParam().type;
      desc.layout = GetParam().layout;
    }
    return desc;
  }
};

INSTANTIATE_TEST_SUITE_P(Cpu, Winograd, testing::ValuesIn(all_forms()),
                         [](const auto& of) { return name_of(of.param); });

TEST_P(Winograd, ConvolvesAsTheLoopsDoWithOddEdges) {
  const HostTensor x = draws({2, 32, 19, 21}, GetParam().type, 1);
  const HostTensor w = draws({48, 32, 3, 3}, DataType::f32, 2);
  expect_like_loops(Conv2d(attributes()), {&x, &w});
}

TEST_P(Winograd, ConvolvesWithPaddingOfEveryKind) {
  const HostTensor x = draws({1, 32, 30, 30}, GetParam().type, 3);
  const HostTensor w = draws({32, 32, 3, 3}, DataType::f32, 4);
  expect_like_loops(Conv2d(attributes({.top = 0, .bottom = 0, .left = 0, .right = 0})), {&x, &w});
  expect_like_loops(Conv2d(attributes({.top = 2, .bottom = 1, .left = 0, .right = 2})), {&x, &w});
}

TEST_P(Winograd, AddsBiasAndResidualAndCutsBelowZero) {
  ConvAttributes a = attributes();
  a.bias = a.residual = a.relu = true;
  const HostTensor x = draws({1, 64, 28, 28}, GetParam().type, 5);
  const HostTensor w = draws({80, 64, 3, 3}, DataType::f32, 6);
  const HostTensor bias = draws({80}, DataType::f32, 7);
  const HostTensor residual = draws({1, 80, 28, 28}, GetParam().type, 8);
  expect_like_loops(Conv2d(a), {&x, &w, &bias, &residual});
}

// A ReLU that made zero of NaN would hide that training has failed.
TEST_P(Winograd, KeepsNanBehindAReLU) {
  ConvAttributes a = attributes();
  a.relu = true;
  const HostTensor x = draws({1, 32, 28, 28}, GetParam().type, 18);
  const HostTensor w = constant({32, 32, 3, 3}, std::numeric_limits<float>::quiet_NaN());
  const Signature asked = forward_signature(a, {1, 32, 28, 28}, 32, GetParam().type);
  const std::array in{x.view(), w.view()};
  const auto run = run_op(winograd_kernels(*GetParam().loops), Conv2d(a), asked, in);
  for (const float y : run.value().out.front().view().as<float>()) {
    ASSERT_TRUE(std::isnan(y));
  }
}

TEST_P(Winograd, PassesGradientsToImages) {
  const ConvAttributes a = attributes({.top = 0, .bottom = 2, .left = 1, .right = 0});
  const Shape x{2, 48, 21, 22};
  const HostTensor dy = draws({2, 32, 21, 21}, GetParam().type, 9);
  const HostTensor w = draws({32, 48, 3, 3}, DataType::f32, 10);
  expect_like_loops(Conv2dBackwardData(a, x), {&dy, &w});
}

TEST_P(Winograd, SumsGradientsOfWeightsAndBias) {
  ConvAttributes a = attributes();
  a.bias = true;
  const HostTensor x = draws({4, 112, 15, 14}, GetParam().type, 11);  // two slabs of each
  const HostTensor dy = draws({4, 80, 15, 14}, GetParam().type, 12);
  expect_like_loops(Conv2dBackwardWeights(a, {80, 112, 3, 3}), {&x, &dy});
}

TEST_P(Winograd, SumsGradientsInSeveralParts) {
  const HostTensor x = draws({1, 32, 96, 96}, GetParam().type, 13);
  const HostTensor dy = draws({1, 32, 96, 96}, GetParam().type, 14);
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

TEST(WinogradThreads, DoNotChangeABit) {
  const ConvAttributes a = attributes();
  const HostTensor x = draws({2, 64, 28, 28}, DataType::f32, 15);
  const HostTensor w = draws({160, 64, 3, 3}, DataType::f32, 16);
  const HostTensor dy = draws({2, 160, 28, 28}, DataType::f32, 17);
  for (const Loops* loops : runnable_loops()) {
    const KernelTable table = winograd_kernels(*loops);
    const std::array forward{x.view(), w.view()}, backward{x.view(), dy.view()};
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
  EXPECT_FALSE(serves(attributes(), {2, 24, 56, 56}, 64));    // half a block of channels
  EXPECT_FALSE(serves(attributes(), {2, 16, 56, 56}, 64));    // too few
  EXPECT_FALSE(serves(attributes(), {1, 64, 14, 14}, 64));    // too few tiles for the weights
  EXPECT_FALSE(serves(attributes(), {64, 512, 7, 7}, 512));   // too much edge
  EXPECT_TRUE(serves(attributes(), {64, 512, 13, 13}, 512));  // not so
}

TEST(WinogradRow, TakesGradientsOfSmallImagesToo) {
  const KernelTable table = winograd_kernels(avx2);
  const Conv2dBackwardWeights op(attributes(), {512, 512, 3, 3});
  EXPECT_TRUE(table.describe(op, gradient_signature(attributes(), {64, 512, 7, 7}, 512)));
}

TEST(WinogradRow, SaysHowFewOperationsItNeeds) {
  const KernelTable table = winograd_kernels(avx2);
  const Signature asked = forward_signature(attributes(), {1, 32, 28, 28}, 64);
  const KernelSpec spec = table.describe(Conv2d(attributes()), asked).value();
  // 14 x 14 tiles of 16 products of 32 x 64 channels, 32 additions a channel in and 24 out
  EXPECT_EQ(spec.flops.value(), 196.0 * (2 * 16 * 32 * 64 + 32 * 32 + 24 * 64));
  EXPECT_EQ(Conv2d(attributes()).flops(asked.in), 2.0 * 28 * 28 * 9 * 32 * 64);
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
