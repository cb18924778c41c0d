#include <algorithm>

#include "layers/cpu/winograd_parts.h"

namespace cnn::layers::cpu {
namespace {

constexpr std::int64_t tile_side = 2;  // of outputs

}  // namespace

WinogradTiles WinogradProblem::cover() const {
  return {.high = (y.shape[2] + tile_side - 1) / tile_side,
          .wide = (y.shape[3] + tile_side - 1) / tile_side,
          .pad_top = pad_top,
          .pad_left = pad_left};
}

std::int64_t WinogradProblem::tiles() const { return y.shape[0] * cover().high * cover().wide; }

double WinogradProblem::flops() const {
  const auto in = static_cast<double>(x.shape[1]), out = static_cast<double>(y.shape[1]);
  return static_cast<double>(tiles()) * (2 * winograd_points * in * out + 32 * in + 24 * out);
}

WinogradImage image_of(const TensorDesc& desc) {
  const std::int64_t channels = desc.shape[1], pixels = desc.shape[2] * desc.shape[3];
  const bool nhwc = desc.layout == Layout::nhwc;
  return {.height = desc.shape[2],
          .width = desc.shape[3],
          .channels = channels,
          .image = pixels * channels,
          .block = nhwc ? winograd_block : pixels * winograd_block,
          .pixel = nhwc ? channels : winograd_block};
}

WinogradConvolution::WinogradConvolution(const WinogradProblem& problem, const Form& form,
                                         const WinogradLoops& loops)
    : problem_(problem), form_(form), loops_(&loops), team_(team_size()) {}

std::size_t WinogradConvolution::workspace() const {
  Carver carver;
  carve(carver);
  return carver.bytes();
}

WinogradConvolution::Scratch WinogradConvolution::carve(Carver& carver) const {
  const std::int64_t in = problem_.x.shape[1], out = problem_.y.shape[1];
  const std::int64_t each = loops_->conv_scratch(in, tiles_together);
  float* const u = carver.take<float>(winograd_points * in * out);
  return {.u = u, .tiles = carver.take<float>(each * team_), .tiles_each = each};
}

void WinogradConvolution::operator()(const Operands& o) const {
  Carver carver(o.workspace);
  const Scratch scratch = carve(carver);
  const std::int64_t in = problem_.x.shape[1], out = problem_.y.shape[1];
  const WinogradWeights weights{.w = o.in[1].as<float>().data(),
                                .in = form_.rotated ? out : in,
                                .out = form_.rotated ? in : out,
                                .rotated = form_.rotated};
  parallel_for(in / winograd_block, 1, [&](std::int64_t first, std::int64_t last) {
    loops_->weights(weights, first * winograd_block, last * winograd_block, scratch.u);
  });
  const WinogradConv conv{.x_image = image_of(problem_.x),
                          .y_image = image_of(problem_.y),
                          .tiles = problem_.cover(),
                          .x = o.in[0].data,
                          .u = scratch.u,
                          .bias = form_.bias ? o.in[2].as<float>().data() : nullptr,
                          .residual = form_.residual ? o.in.back().data : nullptr,
                          .y = o.out[0].data,
                          .relu = form_.relu};
  parallel_for(team_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      convolve_share(conv, i, scratch.tiles + i * scratch.tiles_each);
    }
  });
}

// Computes one thread's share: its part of the tiles and, where there are more threads than tiles
// for them, of the output channels.
void WinogradConvolution::convolve_share(WinogradConv conv, std::int64_t thread,
                                         float* scratch) const {
  const std::int64_t tiles = problem_.tiles(), out = problem_.y.shape[1];
  const std::int64_t panels = (out + loops_->panel - 1) / loops_->panel;
  const std::int64_t across = std::clamp<std::int64_t>(tiles / (2 * tiles_together), 1, team_);
  const std::int64_t deep = std::clamp<std::int64_t>(team_ / across, 1, panels);
  if (thread >= across * deep) {
    return;
  }
  const std::int64_t i = thread / deep, k = thread % deep;
  conv.first_out = panels * k / deep * loops_->panel;
  conv.last_out = std::min(out, panels * (k + 1) / deep * loops_->panel);
  const auto convolve = (problem_.x.type == DataType::f32 ? loops_->f32 : loops_->bf16).convolve;
  in_blocks(tiles * i / across, tiles * (i + 1) / across,
            [&](std::int64_t first, std::int64_t count) { convolve(conv, first, count, scratch); });
}

}  // namespace cnn::layers::cpu
