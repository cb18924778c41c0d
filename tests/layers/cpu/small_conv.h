#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/conv.h"
#include "layers/cpu/conv_candidates.h"
#include "layers/cpu/isa.h"

// A small convolution, and the kernels that can run it on this processor.
namespace cnn::tests {

inline layers::cpu::Isa here() { return layers::cpu::effective_isa(); }

inline layers::ConvAttributes window(std::int64_t side, std::int64_t stride = 1) {
  layers::ConvAttributes a;
  a.window = {.kernel_h = side,
              .kernel_w = side,
              .stride_h = stride,
              .stride_w = stride,
              .pad_top = side / 2,
              .pad_bottom = side / 2,
              .pad_left = side / 2,
              .pad_right = side / 2};
  return a;
}

// A convolution of 16 channels each way, in its directions.
struct Layer {
  explicit Layer(std::int64_t side, std::int64_t stride = 1, std::int64_t image = 12)
      : a(window(side, stride)),
        x{.shape = {2, 16, image, image}, .layout = layers::cpu::preferred_layout(DataType::f32)},
        y(x),
        w{.shape = {16, 16, side, side}} {
    y.shape[2] = y.shape[3] = (image + stride - 1) / stride;
  }
  layers::Conv2d forward() const { return layers::Conv2d(a); }
  layers::Conv2dBackwardWeights gradient() const { return {a, w.shape}; }
  Signature forwards() const { return {.in = {x, w}, .out = {y}}; }
  Signature gradients() const { return {.in = {x, y}, .out = {w}}; }

  layers::ConvAttributes a;
  TensorDesc x, y, w;
};

inline std::vector<std::string> names(const std::vector<layers::cpu::ConvCandidate>& all) {
  std::vector<std::string> result;
  for (const layers::cpu::ConvCandidate& each : all) {
    result.push_back(each.name);
  }
  return result;
}

inline std::vector<std::string> offered(const Op& op, const Signature& request,
                                        bool winograd = true) {
  const layers::cpu::ConvCandidates candidates(here(), winograd);
  return names(candidates.offers(op, candidates.settled(op, request).value()));
}

}  // namespace cnn::tests
