#include <algorithm>

#include "layers/cpu/strided_pixels.h"
#include "layers/cpu/winograd_parts.h"
#include "runtime/divide_up.h"

namespace cnn::layers::cpu {
namespace {

// With fewer tiles a thread would spend its time reading weights.
constexpr std::int64_t min_tiles_each = 48;
// With so few a thread is better than none: they are the rows of one product with AVX-512.
constexpr std::int64_t min_tiles_of_a_thread = 12;

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

// The fewer the tiles, the better they and their products fit the second-level cache; the more, the
// more rarely u is read. Measured with AVX-512, F(4x4, 3x3) and 48, 72, 96 and 144 tiles: 64 to 64
// channels of 16 images of 56 x 56 (u takes 0.6 MiB) take 6.6, 6.8, 7.0 and 7.3 ms, 256 to 256 (9
// MiB) 21.0, 20.1, 19.1 and 19.4, 512 to 512 (36 MiB) 29.7, 26.1, 25.5 and 23.7.
std::int64_t tiles_together(const WinogradProblem& problem) {
  constexpr std::int64_t mebi = 1 << 20;
  const std::int64_t u = problem.form.points() * problem.x.shape[1] * problem.y.shape[1] *
                         static_cast<std::int64_t>(sizeof(float));
  return problem.form.points() == 16 || u <= mebi ? 48 : u <= 16 * mebi ? 96 : 144;
}

WinogradConvolution::WinogradConvolution(const WinogradProblem& problem, const Form& form,
                                         const WinogradLoops& loops)
    : problem_(problem), form_(form), loops_(&loops), team_(team_size()) {}

std::size_t WinogradConvolution::workspace() const {
  BumpAllocator allocator;
  carve(allocator);
  return allocator.bytes();
}

// If there are too few tiles for all threads, threads split the output channels, too; with u,
// threads that share tiles each transform the same inputs.
WinogradConvolution::Shares WinogradConvolution::shares() const {
  const std::int64_t parts = divide_up(problem_.y.shape[1], loops_->min_outs);
  const std::int64_t tiles = problem_.tiles();
  if (tiles <= max_tiles_without_u && parts >= team_) {
    return {.across = 1, .deep = team_, .has_u = false, .tiles = tiles};
  }
  std::int64_t across = std::clamp<std::int64_t>(tiles / min_tiles_each, 1, team_);
  const std::int64_t deep = std::clamp<std::int64_t>(team_ / across, 1, parts);
  if (across * deep < team_) {  // too few channels
    across = std::clamp<std::int64_t>(team_ / deep, 1, divide_up(tiles, min_tiles_of_a_thread));
  }
  return {.across = across,
          .deep = deep,
          .has_u = true,
          .tiles = std::min(divide_up(tiles, across), tiles_together(problem_))};
}

WinogradConvolution::Scratch WinogradConvolution::carve(BumpAllocator& allocator) const {
  const std::int64_t in = problem_.x.shape[1], out = problem_.y.shape[1];
  const Shares by = shares();
  Scratch scratch{};
  if (by.has_u) {
    scratch.u = allocator.take<float>(problem_.form.points() * in * out);
    scratch.own_each = loops_->conv_scratch(in, by.tiles);
  } else {
    scratch.v = allocator.take<float>(loops_->tiles_size(in, by.tiles));
    scratch.own_each = loops_->multiply_scratch(by.tiles);
  }
  scratch.own = allocator.take<float>(scratch.own_each * by.across * by.deep);
  return scratch;
}

void WinogradConvolution::operator()(const Operands& o) const {
  BumpAllocator allocator(o.workspace);
  const Scratch scratch = carve(allocator);
  const std::int64_t in = problem_.x.shape[1], out = problem_.y.shape[1];
  const WinogradConv conv{.x_image = image_of(problem_.x),
                          .y_image = image_of(problem_.y),
                          .tiles = problem_.cover(),
                          .x = o.in[0].data,
                          .u = scratch.u,
                          .weights = {.w = o.in[1].as<float>().data(),
                                      .in = form_.rotated ? out : in,
                                      .out = form_.rotated ? in : out,
                                      .rotated = form_.rotated},
                          .bias = form_.bias ? o.in[2].as<float>().data() : nullptr,
                          .residual = form_.residual ? o.in.back().data : nullptr,
                          .y = o.out[0].data,
                          .relu = form_.relu};
  const Shares by = shares();
  if (by.has_u) {
    const std::int64_t pieces = in / winograd_block * divide_up(out, loops_->panel);
    parallel_for(pieces, 1, [&](std::int64_t first, std::int64_t last) {
      loops_->weights(conv.weights, first, last, scratch.u);
    });
  } else {
    parallel_for(in / winograd_block, 1, [&](std::int64_t first, std::int64_t last) {
      typed_loops().transform(conv, {0, by.tiles},
                              {first * winograd_block, (last - first) * winograd_block}, scratch.v);
    });
  }
  parallel_for(by.across * by.deep, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      convolve_share(conv, i, scratch);
    }
  });
}

void WinogradConvolution::convolve_share(WinogradConv conv, std::int64_t share,
                                         const Scratch& scratch) const {
  const std::int64_t tiles = problem_.tiles(), out = problem_.y.shape[1];
  const std::int64_t parts = divide_up(out, loops_->min_outs);
  const Shares by = shares();
  const std::int64_t i = share / by.deep, k = share % by.deep;
  conv.first_out = parts * k / by.deep * loops_->min_outs;
  conv.last_out = std::min(out, parts * (k + 1) / by.deep * loops_->min_outs);
  float* const own = scratch.own + share * scratch.own_each;
  if (!by.has_u) {
    typed_loops().multiply(conv, {0, by.tiles}, scratch.v, own);
    return;
  }
  in_blocks(tiles * i / by.across, tiles * (i + 1) / by.across, by.tiles,
            [&](std::int64_t first, std::int64_t count) {
              typed_loops().convolve(conv, {first, count}, own);
            });
}

const WinogradTypedLoops& WinogradConvolution::typed_loops() const {
  return problem_.x.type == DataType::f32 ? loops_->f32 : loops_->bf16;
}

}  // namespace cnn::layers::cpu
