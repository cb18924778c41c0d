#include "layers/cpu/bf16_gradient.h"

#include <algorithm>
#include <array>

#include "runtime/divide_up.h"

namespace cnn::layers::cpu {
namespace {

// The packed rows of two blocks of outputs and of one of inputs, 192 bytes for each pair, take
// about half of a first-level cache; the sums of a slab at most 256 KiB of a second-level one.
constexpr std::int64_t max_pairs = 128, max_tiles_of_slab = 256;

// Enough items for many threads, and parts of enough pairs to outweigh the adding of their sums.
constexpr std::int64_t enough_items = 16, min_pairs_of_part = 256;

// The most blocks of a square slab.
std::int64_t slab_side(std::int64_t taps) {
  std::int64_t side = 1;
  while ((side + 1) * (side + 1) * taps <= max_tiles_of_slab) {
    ++side;
  }
  return side;
}

bool is_pointwise(const Bf16GradientProblem& problem) {
  return problem.taps() == 1 && problem.window.pad_top == 0 && problem.window.pad_left == 0 &&
         problem.x.shape[2] == problem.y.shape[2] && problem.x.shape[3] == problem.y.shape[3];
}

}  // namespace

Bf16WeightsGradient::Rows Bf16WeightsGradient::rows_of(const Bf16GradientProblem& problem) {
  const Shape &x = problem.x.shape, &y = problem.y.shape;
  Rows rows{.count = y[2], .width = y[3], .x_count = x[2], .x_width = x[3]};
  if (is_pointwise(problem)) {
    std::int64_t joined = std::clamp<std::int64_t>(2 * max_pairs / y[3], 1, y[2]);
    while (y[2] % joined != 0) {
      --joined;
    }
    rows = {.count = y[2] / joined,
            .width = y[3] * joined,
            .x_count = y[2] / joined,
            .x_width = y[3] * joined};
  }
  return rows;
}

Bf16WeightsGradient::Bf16WeightsGradient(const Bf16GradientProblem& problem, const Loops& loops)
    : problem_(problem), loops_(&loops), rows_(rows_of(problem)), team_(team_size()) {
  const std::int64_t side = slab_side(problem.taps());
  slabs_in_ = divide_up(problem.in_blocks(), side);
  slabs_out_ = divide_up(problem.out_blocks(), side);
  const std::int64_t images = problem.x.shape[0];
  const std::int64_t rows = std::max<std::int64_t>(1, max_pairs / rows_.pairs());
  segments_per_image_ = divide_up(rows_.count, rows);
  images_per_segment_ = std::clamp<std::int64_t>(rows / rows_.count, 1, images);
  const std::int64_t pairs = images * rows_.count * rows_.pairs();
  parts_ = std::clamp<std::int64_t>(
      std::min(divide_up(enough_items, slabs()), pairs / min_pairs_of_part), 1,
      std::min(max_parts, segments()));
}

std::int64_t Bf16WeightsGradient::segments() const {
  return divide_up(problem_.x.shape[0], images_per_segment_) * segments_per_image_;
}

// Sums of a part take a power of two bytes in most networks; one more line keeps the parts, which
// add_parts() reads together, from the same sets of the cache.
std::int64_t Bf16WeightsGradient::sums_of_part() const {
  return problem_.in_blocks() * problem_.out_blocks() * problem_.taps() * gradient_tile +
         gradient_block;
}

// A window of one row reads as many rows as y has, whatever the stride.
std::int64_t Bf16WeightsGradient::packed_x_rows(std::int64_t rows) const {
  const Window& w = problem_.window;
  return w.kernel_h == 1 ? rows : (rows - 1) * w.stride_h + w.kernel_h;
}

std::int64_t Bf16WeightsGradient::packed_x_words() const {
  const std::int64_t rows = divide_up(rows_.count, segments_per_image_);
  return divide_up(problem_.in_blocks(), slabs_in_) * problem_.window.kernel_w *
         images_per_segment_ * packed_x_rows(rows) * rows_.pairs() * words_of_pair;
}

std::int64_t Bf16WeightsGradient::packed_dy_words() const {
  const std::int64_t rows = divide_up(rows_.count, segments_per_image_);
  return divide_up(problem_.out_blocks(), slabs_out_) * images_per_segment_ * rows * rows_.pairs() *
         words_of_pair;
}

Bf16WeightsGradient::Slab Bf16WeightsGradient::slab(std::int64_t number) const {
  const std::int64_t in = number / slabs_out_, out = number % slabs_out_;
  const std::int64_t first_in = problem_.in_blocks() * in / slabs_in_;
  const std::int64_t first_out = problem_.out_blocks() * out / slabs_out_;
  return {.first_in = first_in,
          .ins = problem_.in_blocks() * (in + 1) / slabs_in_ - first_in,
          .first_out = first_out,
          .outs = problem_.out_blocks() * (out + 1) / slabs_out_ - first_out};
}

Bf16WeightsGradient::Segment Bf16WeightsGradient::segment(std::int64_t number) const {
  const std::int64_t group = number / segments_per_image_, place = number % segments_per_image_;
  const std::int64_t image = group * images_per_segment_;
  const std::int64_t first = rows_.count * place / segments_per_image_;
  return {.image = image,
          .images = std::min(images_per_segment_, problem_.x.shape[0] - image),
          .first = first,
          .rows = rows_.count * (place + 1) / segments_per_image_ - first};
}

std::size_t Bf16WeightsGradient::workspace() const {
  BumpAllocator allocator;
  carve(allocator);
  return allocator.bytes();
}

std::size_t Bf16WeightsGradient::traffic_between() const {
  return parts_ == 1 ? 0 : 2 * sizeof(float) * static_cast<std::size_t>(parts_ * sums_of_part());
}

Bf16WeightsGradient::Scratch Bf16WeightsGradient::carve(BumpAllocator& allocator) const {
  Scratch scratch{};
  scratch.sums = allocator.take<float>(parts_ == 1 ? 0 : parts_ * sums_of_part());
  scratch.bias = allocator.take<double>(problem_.bias ? parts_ * problem_.y.shape[1] : 0);
  scratch.own = allocator.take<std::uint16_t>(team_ * (packed_x_words() + packed_dy_words()));
  return scratch;
}

void Bf16WeightsGradient::operator()(const Operands& o) const {
  BumpAllocator allocator(o.workspace);
  const Scratch scratch = carve(allocator);
  parallel_for(team_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t items = parts_ * slabs();
      for (std::int64_t item = items * i / team_; item < items * (i + 1) / team_; ++item) {
        run_item(o, item, scratch, scratch.own + i * (packed_x_words() + packed_dy_words()));
      }
    }
  });
  if (parts_ > 1) {
    add_parts(*loops_,
              {.from = scratch.sums,
               .parts = parts_,
               .stride = sums_of_part(),
               .count = sums_of_part() - gradient_block,
               .tile = gradient_tile},
              o.out[0].as<float>().data());
  }
  if (problem_.bias) {
    sum_parts(scratch.bias, parts_, problem_.y.shape[1], o.out[1].as<float>().data());
  }
}

// The part changes slowest: all slabs of a part read the same rows.
void Bf16WeightsGradient::run_item(const Operands& o, std::int64_t item, const Scratch& scratch,
                                   std::uint16_t* own) const {
  const std::int64_t part = item / slabs();
  const Slab channels = slab(item % slabs());
  const auto* const x = reinterpret_cast<const std::uint16_t*>(o.in[0].data);
  const auto* const dy = reinterpret_cast<const std::uint16_t*>(o.in[1].data);
  std::uint16_t* const packed_dy = own + packed_x_words();
  const std::int64_t tiles = problem_.in_blocks() * problem_.taps() * gradient_tile;
  float* const sums =
      parts_ == 1 ? o.out[0].as<float>().data() : scratch.sums + part * sums_of_part();
  double* const bias =
      problem_.bias && channels.first_in == 0
          ? scratch.bias + part * problem_.y.shape[1] + channels.first_out * gradient_block
          : nullptr;
  if (bias != nullptr) {
    std::fill_n(bias, channels.outs * gradient_block, 0.0);
  }
  Bf16Gradient gradient{.x = own,
                        .dy = packed_dy,
                        .in_blocks = channels.ins,
                        .out_blocks = channels.outs,
                        .kernel_h = problem_.window.kernel_h,
                        .kernel_w = problem_.window.kernel_w,
                        .pairs = rows_.pairs(),
                        .x_step = problem_.window.kernel_h == 1 ? 1 : problem_.window.stride_h,
                        .sums = sums + channels.first_out * tiles +
                                channels.first_in * problem_.taps() * gradient_tile,
                        .sums_of_out_block = tiles};
  const std::int64_t end = segments() * (part + 1) / parts_;
  for (std::int64_t i = segments() * part / parts_; i < end; ++i) {
    const Segment rows = segment(i);
    pack_x(x, channels, rows, own);
    pack_dy(dy, channels, rows, packed_dy);
    gradient.images = rows.images;
    gradient.rows = rows.rows;
    gradient.x_rows = packed_x_rows(rows.rows);
    loops_->bf16_gradient.multiply(gradient);
    gradient.add = true;
    if (bias != nullptr) {
      add_bias(dy, channels, rows, bias);
    }
  }
}

void Bf16WeightsGradient::pack_x(const std::uint16_t* x, const Slab& slab, const Segment& segment,
                                 std::uint16_t* to) const {
  const Window& w = problem_.window;
  Bf16PackRows rows{.height = rows_.x_count,
                    .width = rows_.x_width,
                    .first_row = segment.first * w.stride_h - w.pad_top,
                    .row_stride = w.kernel_h == 1 ? w.stride_h : 1,
                    .column_stride = w.stride_w,
                    .rows = packed_x_rows(segment.rows),
                    .pixels = rows_.width};
  const std::int64_t plane = rows_.x_count * rows_.x_width * gradient_block;
  for (std::int64_t block = slab.first_in; block < slab.first_in + slab.ins; ++block) {
    for (std::int64_t column = 0; column < w.kernel_w; ++column) {
      rows.first_column = column - w.pad_left;
      for (std::int64_t image = segment.image; image < segment.image + segment.images; ++image) {
        rows.image = x + (image * problem_.in_blocks() + block) * plane;
        rows.to = to;
        loops_->bf16_gradient.pack(rows);
        to += rows.rows * rows.pairs() * words_of_pair;
      }
    }
  }
}

void Bf16WeightsGradient::pack_dy(const std::uint16_t* dy, const Slab& slab, const Segment& segment,
                                  std::uint16_t* to) const {
  Bf16PackRows rows{.height = rows_.count,
                    .width = rows_.width,
                    .first_row = segment.first,
                    .rows = segment.rows,
                    .pixels = rows_.width};
  const std::int64_t plane = rows_.count * rows_.width * gradient_block;
  for (std::int64_t block = slab.first_out; block < slab.first_out + slab.outs; ++block) {
    for (std::int64_t image = segment.image; image < segment.image + segment.images; ++image) {
      rows.image = dy + (image * problem_.out_blocks() + block) * plane;
      rows.to = to;
      loops_->bf16_gradient.pack(rows);
      to += rows.rows * rows.pairs() * words_of_pair;
    }
  }
}

void Bf16WeightsGradient::add_bias(const std::uint16_t* dy, const Slab& slab,
                                   const Segment& segment, double* bias) const {
  const std::int64_t row_words = rows_.width * gradient_block;
  for (std::int64_t block = slab.first_out; block < slab.first_out + slab.outs; ++block) {
    for (std::int64_t image = segment.image; image < segment.image + segment.images; ++image) {
      const std::int64_t first =
          (image * problem_.out_blocks() + block) * rows_.count + segment.first;
      std::array<float, gradient_block> sums{};
      loops_->bf16.column_sums(dy + first * row_words, segment.rows * rows_.width, gradient_block,
                               sums.data());
      for (std::size_t i = 0; i < sums.size(); ++i) {
        bias[i] += static_cast<double>(sums[i]);
      }
    }
    bias += gradient_block;
  }
}

}  // namespace cnn::layers::cpu
