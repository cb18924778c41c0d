#include "layers/cpu/tile_gradient.h"

#include <algorithm>
#include <limits>

#include "runtime/divide_up.h"

namespace cnn::layers::cpu {
namespace {

// The sums of a slab, and the packed operands of a strip, each take at most about half of a
// second-level cache of 2 MiB.
constexpr std::int64_t max_tiles_per_slab = 1024, max_bytes_of_strip = 768 << 10;

// Enough items for many threads, and parts of enough steps to outweigh the adding of their sums.
constexpr std::int64_t wanted_items = 16, min_steps_of_part = 16;
constexpr std::int64_t min_steps_of_strip = 8, steps_of_piece = 4;

// Nanoseconds for a tile, measured: packing it, and writing and reading its sums again.
constexpr std::int64_t cost_of_pack = 32, cost_of_sums = 20;

// Blocks are multiplied by two.
constexpr std::int64_t together = 2;

// Returns the first of `blocks` blocks in a slab. All slabs but the last have an even number.
std::int64_t first_of_slab(std::int64_t number, std::int64_t slabs, std::int64_t blocks) {
  return std::min(blocks, divide_up(blocks, together) * number / slabs * together);
}

std::int64_t largest_slab(std::int64_t slabs, std::int64_t blocks) {
  return std::min(blocks, divide_up(divide_up(blocks, together), slabs) * together);
}

}  // namespace

TileWeightsGradient::TileWeightsGradient(const TileGradientProblem& problem, const Loops& loops)
    : problem_(problem),
      loops_(&loops),
      tiles_(&amx_bf16_tile_gradient()),
      positions_(problem.x.shape, problem.y.shape, problem.window),
      team_(team_size()) {
  for (std::int64_t tap = 0; tap < problem.taps(); ++tap) {
    copies_ = std::max(copies_, (positions_.halo() - positions_.shift_of(tap)) % 2 + 1);
  }
  choose_cut();
  const std::int64_t x_bytes = largest_in() * positions_.phases() * tile_words * 2;
  const std::int64_t dy_bytes = largest_out() * copies_ * tile_words * 2;
  const std::int64_t fitting =
      (max_bytes_of_strip - steps_of_dy(0) * dy_bytes) / (x_bytes + dy_bytes);
  steps_of_strip_ = std::min(divide_up(steps(), parts_), std::max(fitting, min_steps_of_strip));
  for (std::int64_t tap = 0; tap < problem.taps(); ++tap) {
    const std::int64_t before = positions_.halo() - positions_.shift_of(tap), odd = before % 2;
    taps_.push_back({.x = positions_.phase_of(tap) * largest_in() * steps_of_strip_ * tile_words,
                     .dy = odd * largest_out() * steps_of_dy(steps_of_strip_) * tile_words +
                           (before + odd) / 2 * tile_row});
  }
}

std::int64_t TileWeightsGradient::largest_in() const {
  return largest_slab(slabs_in_, problem_.in_blocks());
}
std::int64_t TileWeightsGradient::largest_out() const {
  return largest_slab(slabs_out_, problem_.out_blocks());
}

// Takes the cheapest of all cuts that yield enough items, or most items, and whose sums fit.
void TileWeightsGradient::choose_cut() {
  const std::int64_t in_pairs = divide_up(problem_.in_blocks(), together);
  const std::int64_t out_pairs = divide_up(problem_.out_blocks(), together);
  const std::int64_t parts = std::clamp<std::int64_t>(steps() / min_steps_of_part, 1, max_parts);
  const std::int64_t items = std::min(wanted_items, in_pairs * out_pairs * parts);
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  Cut chosen{.slabs_in = in_pairs, .slabs_out = out_pairs, .parts = parts};
  for (std::int64_t in = 1; in <= in_pairs; ++in) {
    for (std::int64_t out = 1; out <= out_pairs; ++out) {
      const Cut cut{.slabs_in = in, .slabs_out = out, .parts = divide_up(items, in * out)};
      const std::int64_t tiles = largest_slab(in, problem_.in_blocks()) *
                                 largest_slab(out, problem_.out_blocks()) * problem_.taps();
      const bool fits =
          tiles <= std::max(max_tiles_per_slab, together * together * problem_.taps());
      if (fits && cut.parts <= parts && cost_of(cut) < best) {
        best = cost_of(cut);
        chosen = cut;
      }
    }
  }
  slabs_in_ = chosen.slabs_in;
  slabs_out_ = chosen.slabs_out;
  parts_ = chosen.parts;
}

// The nanoseconds of what depends on the cut: each slab packs its channels, and each part writes
// and reads its sums.
std::int64_t TileWeightsGradient::cost_of(const Cut& cut) const {
  const std::int64_t packs = problem_.in_blocks() * positions_.phases() * cut.slabs_out +
                             problem_.out_blocks() * copies_ * cut.slabs_in;
  const std::int64_t sums = problem_.in_blocks() * problem_.out_blocks() * problem_.taps();
  return steps() * packs * cost_of_pack + (cut.parts > 1 ? cut.parts * sums * cost_of_sums : 0);
}

std::int64_t TileWeightsGradient::steps() const {
  return divide_up(positions_.count() + positions_.halo(), tile_pixels);
}

// The odd copy begins one position before the halo.
std::int64_t TileWeightsGradient::steps_of_dy(std::int64_t steps) const {
  return steps + divide_up(positions_.halo() + copies_ - 1, tile_pixels);
}

// Sums of a part take a power of two bytes in most networks; one more line keeps the parts, which
// add_parts() reads together, from the same sets of the cache.
std::int64_t TileWeightsGradient::sums_of_part() const {
  return problem_.in_blocks() * problem_.out_blocks() * problem_.taps() * tile_sums + tile_channels;
}

std::int64_t TileWeightsGradient::packed_x_words() const {
  return positions_.phases() * largest_in() * steps_of_strip_ * tile_words;
}

std::int64_t TileWeightsGradient::packed_dy_words() const {
  return copies_ * largest_out() * steps_of_dy(steps_of_strip_) * tile_words;
}

std::int64_t TileWeightsGradient::own_words() const {
  return packed_x_words() + packed_dy_words() + 2 * steps_of_piece * tile_pixels;
}

TileWeightsGradient::Slab TileWeightsGradient::slab(std::int64_t number) const {
  const std::int64_t in = number / slabs_out_, out = number % slabs_out_;
  const std::int64_t first_in = first_of_slab(in, slabs_in_, problem_.in_blocks());
  const std::int64_t first_out = first_of_slab(out, slabs_out_, problem_.out_blocks());
  return {.first_in = first_in,
          .ins = first_of_slab(in + 1, slabs_in_, problem_.in_blocks()) - first_in,
          .first_out = first_out,
          .outs = first_of_slab(out + 1, slabs_out_, problem_.out_blocks()) - first_out};
}

std::size_t TileWeightsGradient::workspace() const {
  BumpAllocator allocator;
  carve(allocator);
  return allocator.bytes();
}

std::size_t TileWeightsGradient::traffic_between() const {
  return parts_ == 1 ? 0 : 2 * sizeof(float) * static_cast<std::size_t>(parts_ * sums_of_part());
}

TileWeightsGradient::Scratch TileWeightsGradient::carve(BumpAllocator& allocator) const {
  Scratch scratch{};
  scratch.sums = allocator.take<float>(parts_ == 1 ? 0 : parts_ * sums_of_part());
  scratch.bias = allocator.take<double>(problem_.bias ? parts_ * problem_.y.shape[1] : 0);
  scratch.columns = allocator.take<float>(problem_.bias ? parts_ * problem_.y.shape[1] : 0);
  scratch.own = allocator.take<std::uint16_t>(team_ * own_words());
  return scratch;
}

void TileWeightsGradient::operator()(const Operands& o) const {
  BumpAllocator allocator(o.workspace);
  const Scratch scratch = carve(allocator);
  parallel_for(team_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t items = parts_ * slabs();
      for (std::int64_t item = items * i / team_; item < items * (i + 1) / team_; ++item) {
        run_item(o, item, scratch, scratch.own + i * own_words());
      }
    }
  });
  if (parts_ > 1) {
    add_parts(*loops_,
              {.from = scratch.sums,
               .parts = parts_,
               .stride = sums_of_part(),
               .count = sums_of_part() - tile_channels,
               .tile = tile_sums},
              o.out[0].as<float>().data());
  }
  if (problem_.bias) {
    sum_parts(scratch.bias, parts_, problem_.y.shape[1], o.out[1].as<float>().data());
  }
}

// The part changes slowest: all slabs of a part read the same pixels.
void TileWeightsGradient::run_item(const Operands& o, std::int64_t item, const Scratch& scratch,
                                   std::uint16_t* own) const {
  const std::int64_t part = item / slabs();
  const Slab channels = slab(item % slabs());
  const std::int64_t tiles = problem_.in_blocks() * problem_.taps() * tile_sums;
  float* const sums =
      parts_ == 1 ? o.out[0].as<float>().data() : scratch.sums + part * sums_of_part();
  TileGradient gradient{
      .x = own,
      .dy = own + packed_x_words(),
      .x_block = steps_of_strip_ * tile_words,
      .dy_block = steps_of_dy(steps_of_strip_) * tile_words,
      .in_blocks = channels.ins,
      .out_blocks = channels.outs,
      .taps = taps_.data(),
      .tap_count = problem_.taps(),
      .sums = sums + channels.first_out * tiles + channels.first_in * problem_.taps() * tile_sums,
      .sums_of_out_block = tiles};
  const std::int64_t end = steps() * (part + 1) / parts_;
  for (std::int64_t first = steps() * part / parts_; first < end; first += gradient.steps) {
    gradient.steps = std::min(steps_of_strip_, end - first);
    pack(o, channels, first, gradient.steps, own);
    tiles_->multiply(gradient);
    gradient.add = true;
  }
  if (problem_.bias && item % slabs() == 0) {
    add_bias(o, part, scratch);
  }
}

// Packs a few steps at a time, so that the copies of dy read it from memory once.
void TileWeightsGradient::pack(const Operands& o, const Slab& slab, std::int64_t first,
                               std::int64_t steps, std::uint16_t* own) const {
  const Packed to{
      .x = own,
      .dy = own + packed_x_words(),
      .pixels = reinterpret_cast<std::int32_t*>(own + packed_x_words() + packed_dy_words())};
  const std::int64_t all = steps_of_dy(steps);
  for (std::int64_t step = 0; step < all; step += steps_of_piece) {
    if (step < steps) {
      pack_x(o, slab, {first, step, std::min(steps_of_piece, steps - step)}, to);
    }
    pack_dy(o, slab, {first, step, std::min(steps_of_piece, all - step)}, to);
  }
}

void TileWeightsGradient::pack_x(const Operands& o, const Slab& slab, const Piece& piece,
                                 const Packed& to) const {
  const std::int64_t position = (piece.strip + piece.first) * tile_pixels;
  TilePack rows{
      .image = reinterpret_cast<const std::uint16_t*>(o.in[0].data) + slab.first_in * tile_channels,
      .pixels = to.pixels,
      .channels = pitch_of(problem_.x),
      .steps = piece.steps,
      .blocks = slab.ins,
      .to = to.x + piece.first * tile_words,
      .to_block = steps_of_strip_ * tile_words};
  for (std::int64_t phase = 0; phase < positions_.phases(); ++phase) {
    positions_.list_x(phase, position, piece.steps * tile_pixels, to.pixels);
    tiles_->pack_rows(rows);
    rows.to += largest_in() * rows.to_block;
  }
}

void TileWeightsGradient::pack_dy(const Operands& o, const Slab& slab, const Piece& piece,
                                  const Packed& to) const {
  const std::int64_t position = (piece.strip + piece.first) * tile_pixels - positions_.halo();
  TilePack pairs{.image = reinterpret_cast<const std::uint16_t*>(o.in[1].data) +
                          slab.first_out * tile_channels,
                 .pixels = to.pixels,
                 .channels = pitch_of(problem_.y),
                 .steps = piece.steps,
                 .blocks = slab.outs,
                 .to = to.dy + piece.first * tile_words,
                 .to_block = steps_of_dy(steps_of_strip_) * tile_words};
  for (std::int64_t copy = 0; copy < copies_; ++copy) {
    positions_.list_dy(position - copy, piece.steps * tile_pixels, to.pixels);
    tiles_->pack_pairs(pairs);
    pairs.to += largest_out() * pairs.to_block;
  }
}

void TileWeightsGradient::add_bias(const Operands& o, std::int64_t part,
                                   const Scratch& scratch) const {
  constexpr std::int64_t pixels_of_piece = 256;
  const std::int64_t channels = problem_.y.shape[1], pitch = pitch_of(problem_.y);
  const std::int64_t pixels = problem_.y.shape[0] * problem_.y.shape[2] * problem_.y.shape[3];
  const auto* const dy = reinterpret_cast<const std::uint16_t*>(o.in[1].data);
  float* const sums = scratch.columns + part * channels;
  double* const bias = scratch.bias + part * channels;
  std::fill_n(bias, channels, 0.0);
  const std::int64_t end = pixels * (part + 1) / parts_;
  for (std::int64_t first = pixels * part / parts_; first < end; first += pixels_of_piece) {
    std::fill_n(sums, channels, 0.0F);
    const std::int64_t count = std::min(pixels_of_piece, end - first);
    const std::int64_t rows = pitch == channels ? count : 1;  // that lie end to end
    for (std::int64_t pixel = first; pixel < first + count; pixel += rows) {
      loops_->bf16.column_sums(dy + pixel * pitch, rows, channels, sums);
    }
    for (std::int64_t i = 0; i < channels; ++i) {
      bias[i] += static_cast<double>(sums[i]);
    }
  }
}

}  // namespace cnn::layers::cpu
