#include "layers/cpu/winograd_parts.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "layers/conv.h"
#include "layers/cpu/simd/winograd_loops.h"
#include "tests/layers/cpu/run_work.h"
#include "tests/layers/cpu/sixteen_floats.h"

// The loops of Winograd's algorithm over vectors of 16 floats, on any processor: the order of
// scratch arrays depends on the width.
namespace cnn::tests {
namespace {

using layers::cpu::WinogradConvolution;
using layers::cpu::WinogradForm;
using layers::cpu::WinogradLoops;
using layers::cpu::WinogradProblem;
using layers::cpu::WinogradWeightsGradient;

// One convolution with 48 and with 80 channels: an odd number of blocks of 16, so that the last
// panel of 64 is cut, and gradients have slabs of 48 and of 32.
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
