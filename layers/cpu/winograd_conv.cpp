#include <algorithm>

#include "layers/cpu/strided_pixels.h"
#include "layers/cpu/winograd_parts.h"
#include "runtime/divide_up.h"

namespace cnn::layers::cpu {
namespace {

// With fewer tiles a thread would spend its time reading weights.
constexpr std::int64_t min_tiles_each = 48;

// Additions and products of the transforms of one line, into points and out of them, as in
// winograd_lines.h; the pair of points 1 and -1 needs no products.
std::int64_t operations_before(std::int64_t points) {
  const std::int64_t pairs = (points - 2) / 2;
  return points == 1 ? 0 : pairs == 1 ? 4 : pairs * (4 * pairs + 3);
}
std::int64_t operations_after(std::int64_t tile, std::int64_t points) {
  const std::int64_t pairs = (points - 2) / 2;
  return points == 1 ? 0 : pairs == 1 ? 4 : 3 * pairs + 1 + (tile - 1) * (2 * pairs - 1);
}

}  // namespace

WinogradTiles WinogradProblem::cover() const {
  return {.high = divide_up(y.shape[2], form.tile_h),
          .wide = divide_up(y.shape[3], form.tile_w),
          .pad_top = pad_top,
          .pad_left = pad_left};
}

std::int64_t WinogradProblem::tiles() const { return y.shape[0] * cover().high * cover().wide; }

double WinogradProblem::flops() const {
  const auto in = static_cast<double>(x.shape[1]), out = static_cast<double>(y.shape[1]);
  const auto before = static_cast<double>(form.points_w() * operations_before(form.points_h()) +
                                          form.points_h() * operations_before(form.points_w()));
  const auto after =
      static_cast<double>(form.points_w() * operations_after(form.tile_h, form.points_h()) +
                          form.tile_h * operations_after(form.tile_w, form.points_w()));
  const auto points = static_cast<double>(form.points());
  return static_cast<double>(tiles()) * (2 * points * in * out + before * in + after * out);
}

WinogradImage image_of(const TensorDesc& desc) {
  const BlockStrides strides = block_strides(desc);
  return {.height = desc.shape[2],
          .width = desc.shape[3],
          .channels = desc.shape[1],
          .image = strides.image,
          .block = strides.block,
          .pixel = strides.pixel};
}

WinogradConvolution::WinogradConvolution(const WinogradProblem& problem, const Form& form,
                                         const WinogradLoops& loops)
    : problem_(problem), form_(form), loops_(&loops), team_(team_size()) {}

std::size_t WinogradConvolution::workspace() const {
  BumpAllocator allocator;
  carve(allocator);
  return allocator.bytes();
}

// If there are too few tiles for all threads, threads split the output channels; threads that share
// tiles each transform the same inputs.
WinogradConvolution::Shares WinogradConvolution::shares() const {
  const std::int64_t panels = divide_up(problem_.y.shape[1], loops_->panel);
  const std::int64_t across = std::clamp<std::int64_t>(problem_.tiles() / min_tiles_each, 1, team_);
  return {.across = across, .deep = std::clamp<std::int64_t>(team_ / across, 1, panels)};
}

WinogradConvolution::Scratch WinogradConvolution::carve(BumpAllocator& allocator) const {
  const std::int64_t in = problem_.x.shape[1], out = problem_.y.shape[1];
  const auto [across, deep] = shares();
  const std::int64_t most = divide_up(problem_.tiles(), across);
  const std::int64_t each = loops_->conv_scratch(in, std::min(most, tiles_together(problem_.form)));
  float* const u = allocator.take<float>(problem_.form.points() * in * out);
  return {.u = u, .tiles = allocator.take<float>(each * across * deep), .tiles_each = each};
}

void WinogradConvolution::operator()(const Operands& o) const {
  BumpAllocator allocator(o.workspace);
  const Scratch scratch = carve(allocator);
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
  const auto [across, deep] = shares();
  parallel_for(across * deep, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      convolve_share(conv, i, scratch.tiles + i * scratch.tiles_each);
    }
  });
}

void WinogradConvolution::convolve_share(WinogradConv conv, std::int64_t share,
                                         float* scratch) const {
  const std::int64_t tiles = problem_.tiles(), out = problem_.y.shape[1];
  const std::int64_t panels = divide_up(out, loops_->panel);
  const auto [across, deep] = shares();
  const std::int64_t i = share / deep, k = share % deep;
  conv.first_out = panels * k / deep * loops_->panel;
  conv.last_out = std::min(out, panels * (k + 1) / deep * loops_->panel);
  const auto convolve = (problem_.x.type == DataType::f32 ? loops_->f32 : loops_->bf16).convolve;
  in_blocks(tiles * i / across, tiles * (i + 1) / across, tiles_together(problem_.form),
            [&](std::int64_t first, std::int64_t count) { convolve(conv, first, count, scratch); });
}

}  // namespace cnn::layers::cpu
