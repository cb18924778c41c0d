#include "layers/cpu/winograd_parts.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "layers/conv.h"
#include "layers/cpu/simd/winograd_loops.h"
#include "tests/layers/cpu/own_kernels.h"
#include "tests/support/numeric.h"

// The loops of Winograd's algorithm over vectors of 16 floats, on any processor: the order of
// scratch arrays depends on the width.
namespace cnn::tests {
namespace {

using layers::cpu::WinogradConvolution;
using layers::cpu::WinogradForm;
using layers::cpu::WinogradLoops;
using layers::cpu::WinogradProblem;
using layers::cpu::WinogradWeightsGradient;

// Vectors as wide as those of AVX-512, which the compiler makes of what the processor has.
struct SixteenFloats {
  using Float [[gnu::vector_size(64)]] = float;
  static constexpr std::int64_t width = 16;
  struct All {};

  static Float zero() { return Float{}; }
  static Float set(float value) { return Float{} + value; }
  static Float load(const float* from, All /*lanes*/) {
    Float value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
  }
  static Float load(const std::uint16_t* from, All /*lanes*/) {
    Float value{};
    for (int i = 0; i < 16; ++i) {
      value[i] = to_float(BFloat16{from[i]});
    }
    return value;
  }
  static void store(float* to, Float value, All /*lanes*/) {
    __builtin_memcpy(to, &value, sizeof value);
  }
  static void store(std::uint16_t* to, Float value, All /*lanes*/) {
    for (int i = 0; i < 16; ++i) {
      to[i] = to_bf16(value[i]).bits;
    }
  }
  static Float fma(Float a, Float b, Float c) { return a * b + c; }
  static Float max(Float a, Float b) { return a > b ? a : b; }
};

// One convolution with 48 and with 80 channels: an odd number of blocks of 16, so that the last
// panel of 32 is cut.
struct Case {
  const WinogradLoops& loops;
  Layout layout = Layout::nhwc;

  const WinogradForm& form() const { return loops.form; }
  layers::ConvAttributes attributes() const {
    layers::ConvAttributes result;
    result.bias = true;
    result.window = {.kernel_h = form().taps_h,
                     .kernel_w = form().taps_w,
                     .pad_top = form().taps_h / 2,
                     .pad_bottom = form().taps_h / 2,
                     .pad_left = form().taps_w / 2,
                     .pad_right = form().taps_w / 2};
    return result;
  }
  TensorDesc image(std::int64_t channels) const {
    return {.shape = {7, channels, 13, 11}, .layout = layout};
  }
  TensorDesc weights() const { return {.shape = {80, 48, form().taps_h, form().taps_w}}; }
  WinogradProblem problem() const {
    return {.x = image(48),
            .y = image(80),
            .pad_top = form().taps_h / 2,
            .pad_left = form().taps_w / 2,
            .form = form()};
  }
};

// Runs the work and the op's loops on the same operands and expects about equal results.
template <class Work>
void expect_like_loops(const Work& work, const Op& op, const std::vector<TensorDesc>& in,
                       const std::vector<TensorDesc>& out) {
  std::vector<HostTensor> plain_in, given, expected, results;
  std::vector<TensorView> before, after;
  Operands operands;
  for (const TensorDesc& desc : in) {
    plain_in.push_back(draws(desc.shape, DataType::f32, plain_in.size()));
    pack(plain_in.back().view(), given.emplace_back(desc).view());
  }
  for (const TensorDesc& desc : out) {
    expected.emplace_back(plain(desc));
    results.emplace_back(desc);
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    before.push_back(plain_in[i].view());
    operands.in.push_back(given[i].view());
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    after.push_back(expected[i].view());
    operands.out.push_back(results[i].view());
  }
  HostTensor workspace({.shape = {static_cast<std::int64_t>(work.workspace() / sizeof(float))}});
  operands.workspace = {workspace.view().data, work.workspace()};
  work(operands);
  EXPECT_TRUE(workspace.guard_is_intact());
  op.reference(before, after);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const HostTensor result(plain(out[i]));
    unpack(results[i].view(), result.view());
    EXPECT_TRUE(results[i].guard_is_intact());
    const auto text = difference(after[i], result.view(), 1e-4);
    EXPECT_FALSE(text) << op.name() << ", output " << i << ": " << *text;
  }
}

void expect_both_directions(const Case& test) {
  const WinogradProblem problem = test.problem();
  const layers::ConvAttributes attributes = test.attributes();
  const TensorDesc bias{.shape = {80}};
  expect_like_loops(WinogradConvolution(problem, {.bias = true}, test.loops),
                    layers::Conv2d(attributes), {problem.x, test.weights(), bias}, {problem.y});
  expect_like_loops(WinogradWeightsGradient(problem, true, test.loops),
                    layers::Conv2dBackwardWeights(attributes, test.weights().shape),
                    {problem.x, problem.y}, {test.weights(), bias});
}

template <std::size_t... form>
std::vector<WinogradLoops> wide_loops(std::index_sequence<form...> /*forms*/) {
  return {layers::cpu::make_winograd<SixteenFloats, layers::cpu::winograd_forms[form]>()...};
}

TEST(WinogradParts, ComputesWhatTheLoopsDo) {
  const auto all = wide_loops(std::make_index_sequence<layers::cpu::winograd_form_count>());
  for (const WinogradLoops& loops : all) {
    for (const Layout layout : {Layout::nhwc, Layout::nchw16c}) {
      SCOPED_TRACE(std::to_string(loops.form.tile_h) + "x" + std::to_string(loops.form.tile_w) +
                   " of " + std::to_string(loops.form.taps_h) + "x" +
                   std::to_string(loops.form.taps_w) + " " + std::string(name_of(layout)));
      expect_both_directions({.loops = loops, .layout = layout});
    }
  }
}

}  // namespace
}  // namespace cnn::tests
