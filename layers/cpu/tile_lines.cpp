#include "layers/cpu/tile_lines.h"

#include <algorithm>

namespace cnn::layers::cpu {
namespace {

using Word = std::uint16_t;

// Rows of dy whose lines and gradients stay in a second-level cache.
constexpr std::int64_t rows_of_band = 8;

// Enough parts for many threads.
constexpr std::int64_t wanted_parts = 32;

constexpr std::int64_t max_step = 16;

}  // namespace

bool TileLinesProblem::is_supported() const {
  return channels() < tile_channels && step() <= max_step &&
         y.shape[1] % (2 * tile_channels) == 0 && y.shape[2] > 0 && y.shape[3] > 0;
}

TileLinesWeightsGradient::TileLinesWeightsGradient(const TileLinesProblem& problem,
                                                   const Loops& loops)
    : problem_(problem),
      loops_(&loops),
      team_(team_size()),
      bands_of_image_(divide_up(problem.y.shape[2], rows_of_band)),
      parts_(std::min(wanted_parts, problem.y.shape[0] * bands_of_image_)) {
  const std::int64_t width = problem.y.shape[3];
  for (std::int64_t i = 0; i < rows_of_band * pitch(); ++i) {
    const std::int64_t column = i % pitch();
    pixels_.push_back(column < width ? static_cast<std::int32_t>(i / pitch() * width + column)
                                     : -1);
  }
}

std::int64_t TileLinesWeightsGradient::pitch() const {
  return divide_up(problem_.y.shape[3], line_step) * line_step;
}

std::int64_t TileLinesWeightsGradient::sums_of_part() const {
  return problem_.out_blocks() * problem_.line_blocks() * tile_sums;
}

std::int64_t TileLinesWeightsGradient::rows_of_x(std::int64_t rows) const {
  return (rows - 1) * problem_.window.stride_h + problem_.window.kernel_h;
}

// The last block of lines may read 15 lines more.
std::int64_t TileLinesWeightsGradient::lines_words() const {
  return (rows_of_x(rows_of_band) * problem_.lines() + tile_channels) * pitch();
}

std::int64_t TileLinesWeightsGradient::dy_words() const { return rows_of_band * pitch() * outs(); }

std::int64_t TileLinesWeightsGradient::phase_pitch() const {
  return pitch() + divide_up(problem_.lines() / problem_.step() + line_step, line_step) * line_step;
}

std::int64_t TileLinesWeightsGradient::row_words() const {
  const std::int64_t image = (problem_.x.shape[3] + problem_.window.pad_left) * problem_.channels();
  return divide_up(std::max(image, phase_pitch() * problem_.step()), line_step) * line_step;
}

std::int64_t TileLinesWeightsGradient::own_words() const {
  return lines_words() + dy_words() + row_words() + problem_.step() * phase_pitch();
}

TileLinesWeightsGradient::Scratch TileLinesWeightsGradient::carve(BumpAllocator& allocator) const {
  Scratch scratch{};
  scratch.sums = allocator.take<float>(parts_ * sums_of_part());
  scratch.columns = allocator.take<float>(problem_.bias ? parts_ * outs() : 0);
  scratch.bias = allocator.take<double>(problem_.bias ? parts_ * outs() : 0);
  scratch.own = allocator.take<Word>(team_ * own_words());
  return scratch;
}

std::size_t TileLinesWeightsGradient::workspace() const {
  BumpAllocator allocator;
  carve(allocator);
  return allocator.bytes();
}

std::size_t TileLinesWeightsGradient::traffic_between() const {
  return 2 * sizeof(float) * static_cast<std::size_t>(parts_ * sums_of_part());
}

TileLinesWeightsGradient::Band TileLinesWeightsGradient::band(std::int64_t number) const {
  const std::int64_t first = number % bands_of_image_ * rows_of_band;
  return {.image = number / bands_of_image_,
          .first = first,
          .rows = std::min(rows_of_band, problem_.y.shape[2] - first)};
}

void TileLinesWeightsGradient::operator()(const Operands& o) const {
  BumpAllocator allocator(o.workspace);
  const Scratch scratch = carve(allocator);
  parallel_for(team_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t part = parts_ * i / team_; part < parts_ * (i + 1) / team_; ++part) {
        run_part(o, part, scratch, scratch.own + i * own_words());
      }
    }
  });
  write_weights(scratch.sums, o.out[0].as<float>().data());
  if (problem_.bias) {
    sum_parts(scratch.bias, parts_, outs(), o.out[1].as<float>().data());
  }
}

void TileLinesWeightsGradient::run_part(const Operands& o, std::int64_t part,
                                        const Scratch& scratch, Word* own) const {
  const Shape &x = problem_.x.shape, &y = problem_.y.shape;
  const std::int64_t bands = y[0] * bands_of_image_;
  Word* const dy = own + lines_words();
  TileLinesGradient gradient{.lines = own,
                             .pitch = pitch(),
                             .next_row = problem_.window.stride_h * problem_.lines() * pitch(),
                             .dy = dy,
                             .line_blocks = problem_.line_blocks(),
                             .out_blocks = problem_.out_blocks(),
                             .sums = scratch.sums + part * sums_of_part()};
  if (problem_.bias) {
    std::fill_n(scratch.bias + part * outs(), outs(), 0.0);
  }
  for (std::int64_t i = bands * part / parts_; i < bands * (part + 1) / parts_; ++i) {
    const Band rows = band(i);
    unroll(reinterpret_cast<const Word*>(o.in[0].data) + rows.image * x[2] * x[3] * x[1], rows,
           own);
    const Word* const first = reinterpret_cast<const Word*>(o.in[1].data) +
                              (rows.image * y[2] + rows.first) * y[3] * outs();
    pack(first, rows, dy);
    gradient.rows = rows.rows;
    amx_bf16_tile_lines().multiply(gradient);
    gradient.add = true;
    if (problem_.bias) {
      add_bias(first, rows, part, scratch);
    }
  }
}

// Unrolls the rows of x that a band meets; those outside of the image are zero.
void TileLinesWeightsGradient::unroll(const Word* image, const Band& band, Word* own) const {
  const Window& window = problem_.window;
  const std::int64_t height = problem_.x.shape[2];
  const std::int64_t words = problem_.x.shape[3] * problem_.channels();
  const std::int64_t left = window.pad_left * problem_.channels();
  Word* const row = own + lines_words() + dy_words();
  TileLines lines{.row = row,
                  .step = problem_.step(),
                  .lines = problem_.lines(),
                  .outputs = problem_.y.shape[3],
                  .pitch = pitch(),
                  .phases = row + row_words(),
                  .phase_pitch = phase_pitch(),
                  .to = own};
  std::fill_n(row, row_words(), Word{0});
  for (std::int64_t i = 0; i < rows_of_x(band.rows); ++i, lines.to += lines.lines * pitch()) {
    const std::int64_t h = band.first * window.stride_h - window.pad_top + i;
    if (h < 0 || h >= height) {
      std::fill_n(lines.to, lines.lines * pitch(), Word{0});
    } else {
      std::copy_n(image + h * words, words, row + left);
      amx_bf16_tile_lines().unroll(lines);
    }
  }
}

void TileLinesWeightsGradient::pack(const Word* dy, const Band& band, Word* to) const {
  const std::int64_t steps = band.rows * pitch() / line_step;
  amx_bf16_tile_gradient().pack_pairs({.image = dy,
                                       .pixels = pixels_.data(),
                                       .channels = outs(),
                                       .steps = steps,
                                       .blocks = problem_.out_blocks(),
                                       .to = to,
                                       .to_block = steps * tile_words});
}

void TileLinesWeightsGradient::add_bias(const Word* dy, const Band& band, std::int64_t part,
                                        const Scratch& scratch) const {
  float* const sums = scratch.columns + part * outs();
  double* const bias = scratch.bias + part * outs();
  const std::int64_t width = problem_.y.shape[3];
  for (std::int64_t row = 0; row < band.rows; ++row) {
    std::fill_n(sums, outs(), 0.0F);
    loops_->bf16.column_sums(dy + row * width * outs(), width, outs(), sums);
    for (std::int64_t i = 0; i < outs(); ++i) {
      bias[i] += static_cast<double>(sums[i]);
    }
  }
}

// Adds the parts in their order and spreads the lines to taps of 16 channels.
void TileLinesWeightsGradient::write_weights(const float* sums, float* dw) const {
  const std::int64_t channels = problem_.channels();
  const std::int64_t taps = problem_.window.kernel_h * problem_.window.kernel_w;
  parallel_for(problem_.out_blocks() * taps, divide_up(elements_per_thread, parts_ * tile_sums),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   float* const to = dw + i * tile_sums;
                   std::fill_n(to, tile_sums, 0.0F);
                   const float* const from = sums + i / taps * problem_.line_blocks() * tile_sums +
                                             i % taps * channels * tile_channels;
                   for (std::int64_t part = 0; part < parts_; ++part) {
                     for (std::int64_t j = 0; j < channels * tile_channels; ++j) {
                       to[j] += from[part * sums_of_part() + j];
                     }
                   }
                 }
               });
}

}  // namespace cnn::layers::cpu
