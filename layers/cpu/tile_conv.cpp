#include "layers/cpu/tile_conv.h"

#include <algorithm>
#include <cstddef>

#include "runtime/divide_up.h"

namespace cnn::layers::cpu {
namespace {

// The rows of a group take at most so much of a second-level cache of 2 MiB, beside weights.
constexpr std::int64_t max_bytes_of_group = 768 << 10;

// Larger images would be read from memory again for each 32 channels.
constexpr std::int64_t max_bytes_of_image = 8 << 20;

// Rows of a power of two of bytes would compete for the same sets of a cache.
constexpr std::int64_t gap_words = 32;

// Returns the shape with another number of images.
Shape of_images(Shape shape, std::int64_t images) {
  shape[0] = images;
  return shape;
}

TilePositions positions_of(const TileConvProblem& problem, std::int64_t images) {
  return {of_images(problem.x.shape, images), of_images(problem.y.shape, images), problem.window};
}

}  // namespace

TileConvolution::TileConvolution(const TileConvProblem& problem)
    : problem_(problem), team_(team_size()), positions_(positions_of(problem, 1)) {
  choose_groups();
  list_phases();
  list_unwritten();
}

// As many images as fit, and one group or more for each thread. With fewer images than threads the
// written channels are cut into slabs.
void TileConvolution::choose_groups() {
  const std::int64_t bytes_of_image = own_rows() * 2;
  const std::int64_t fitting = std::max<std::int64_t>(1, max_bytes_of_group / bytes_of_image);
  groups_ = std::min(images(), team_ * divide_up(images(), team_ * fitting));
  of_group_ = divide_up(images(), groups_);
  positions_ = positions_of(problem_, of_group_);
  slabs_ = std::min(divide_up(team_, groups_), problem_.outs() / tile_conv_channels);
}

// Lists the taps that reach each phase of the written image. Those of a gradient read earlier rows.
void TileConvolution::list_phases() {
  const std::int64_t phases = problem_.backward ? positions_.phases() : 1;
  for (std::int64_t phase = 0; phase < phases; ++phase) {
    phases_.push_back({.number = phase, .taps = {}});
  }
  for (std::int64_t tap = 0; tap < problem_.taps(); ++tap) {
    const std::int64_t phase = positions_.phase_of(tap), shift = positions_.shift_of(tap);
    const std::int64_t first =
        problem_.backward ? positions_.halo() - shift : phase * rows() + shift;
    phases_[static_cast<std::size_t>(problem_.backward ? phase : 0)].taps.push_back(
        {.rows = first * row(), .w = tap * problem_.ins() * problem_.block});
  }
}

void TileConvolution::list_unwritten() {
  const Shape& to = problem_.to().shape;
  std::vector<bool> is_written(static_cast<std::size_t>(to[2] * to[3]));
  std::vector<std::int32_t> pixels(static_cast<std::size_t>(steps() * tile_conv_positions));
  for (const Phase& phase : phases_) {
    list(!problem_.backward, phase.number, 0, std::ssize(pixels), 1, pixels.data());
    for (const std::int32_t pixel : pixels) {
      if (pixel >= 0) {
        is_written[static_cast<std::size_t>(pixel)] = true;
      }
    }
  }
  for (std::size_t pixel = 0; pixel < is_written.size(); ++pixel) {
    if (!is_written[pixel]) {
      unwritten_.push_back(static_cast<std::int32_t>(pixel));
    }
  }
}

std::int64_t TileConvolution::row() const { return problem_.ins() + gap_words; }

std::int64_t TileConvolution::steps() const {
  return divide_up(positions_.count() + (problem_.backward ? positions_.halo() : 0),
                   tile_conv_positions);
}

std::int64_t TileConvolution::rows() const {
  return steps() * tile_conv_positions + positions_.halo();
}

bool TileConvolution::is_useful() const { return own_rows() * 2 <= max_bytes_of_image * of_group_; }

std::size_t TileConvolution::workspace() const {
  BumpAllocator allocator;
  carve(allocator);
  return allocator.bytes();
}

TileConvolution::Own TileConvolution::carve(BumpAllocator& allocator) const {
  Own own{};
  own.rows = allocator.take<std::uint16_t>(team_ * own_rows());
  own.pixels = allocator.take<std::int32_t>(team_ * rows());
  return own;
}

void TileConvolution::list(bool is_dy, std::int64_t phase, std::int64_t first, std::int64_t count,
                           std::int64_t images, std::int32_t* to) const {
  if (is_dy) {
    positions_.list_dy(first, count, to);
  } else {
    positions_.list_x(phase, first, count, to);
  }
  if (images < of_group_) {
    const Shape& shape = is_dy ? problem_.y.shape : problem_.x.shape;
    const std::int64_t end = images * shape[2] * shape[3];
    std::replace_if(
        to, to + count, [end](std::int32_t pixel) { return pixel >= end; }, -1);
  }
}

void TileConvolution::operator()(const Operands& o) const {
  BumpAllocator allocator(o.workspace);
  const Own first = carve(allocator);
  const std::int64_t items = groups_ * slabs_;
  parallel_for(team_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Own own{.rows = first.rows + i * own_rows(), .pixels = first.pixels + i * rows()};
      for (std::int64_t item = items * i / team_; item < items * (i + 1) / team_; ++item) {
        run_item(o, item, own);
      }
    }
  });
}

void TileConvolution::run_item(const Operands& o, std::int64_t item, const Own& own) const {
  const std::int64_t group = item / slabs_, slab = item % slabs_;
  const std::int64_t image = images() * group / groups_;
  const std::int64_t count = images() * (group + 1) / groups_ - image;
  const std::int64_t from_pixel = pitch_of(problem_.from()), to_pixel = pitch_of(problem_.to());
  const Shape &from = problem_.from().shape, &to = problem_.to().shape;
  pack(
      reinterpret_cast<const std::uint16_t*>(o.in[0].data) + image * from[2] * from[3] * from_pixel,
      count, own);
  const std::int64_t blocks = problem_.outs() / tile_conv_channels;
  TileConv conv{
      .rows = own.rows,
      .row = row(),
      .depth = problem_.ins() / tile_conv_channels,
      .w = reinterpret_cast<const std::uint16_t*>(o.in[1].data),
      .block = problem_.block,
      .w_block = problem_.taps() * problem_.ins() * problem_.block,
      .first_out = blocks * slab / slabs_ * tile_conv_channels,
      .end_out = blocks * (slab + 1) / slabs_ * tile_conv_channels,
      .y = reinterpret_cast<std::uint16_t*>(o.out[0].data) + image * to[2] * to[3] * to_pixel,
      .y_pixel = to_pixel,
      .pixels = own.pixels,
      .steps = steps()};
  for (std::int64_t i = 0; i < count; ++i) {
    for (const std::int32_t pixel : unwritten_) {
      std::fill_n(conv.y + (i * to[2] * to[3] + pixel) * to_pixel + conv.first_out,
                  conv.end_out - conv.first_out, std::uint16_t{0});
    }
  }
  for (const Phase& phase : phases_) {
    list(!problem_.backward, phase.number, 0, conv.steps * tile_conv_positions, count, own.pixels);
    conv.taps = phase.taps.data();
    conv.tap_count = std::ssize(phase.taps);
    amx_bf16_tile_conv().multiply(conv);
  }
}

// Copies the pixels of a group to their positions, of which a gradient reads some before the first.
void TileConvolution::pack(const std::uint16_t* from, std::int64_t images, const Own& own) const {
  const std::int64_t first = problem_.backward ? -positions_.halo() : 0;
  const std::int64_t channels = problem_.ins(), pitch = pitch_of(problem_.from());
  for (std::int64_t phase = 0; phase < read_phases(); ++phase) {
    list(problem_.backward, phase, first, rows(), images, own.pixels);
    std::uint16_t* to = own.rows + phase * rows() * row();
    for (std::int64_t i = 0; i < rows(); ++i, to += row()) {
      if (own.pixels[i] < 0) {
        std::fill_n(to, channels, std::uint16_t{0});
      } else {
        std::copy_n(from + own.pixels[i] * pitch, channels, to);
      }
    }
  }
}

}  // namespace cnn::layers::cpu
