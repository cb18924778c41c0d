#include "layers/cpu/few_channels_gradient.h"

#include <algorithm>
#include <array>

#include "runtime/divide_up.h"

namespace cnn::layers::cpu {
namespace {

constexpr std::int64_t max_channels = 4, max_kernel = 16;

// Pixels of a row that are multiplied at a time: with 16 output channels 8 KiB of dy, which stay in
// the first-level cache.
constexpr std::int64_t max_pixels = 128;

}  // namespace

bool is_supported(const FewChannelsProblem& problem) {
  const auto is_one_of = [](Layout layout, Layout a, Layout b) {
    return layout == a || layout == b;
  };
  return problem.x.type == DataType::f32 && problem.y.type == DataType::f32 &&
         problem.x.pitch == 0 && problem.y.pitch == 0 &&
         is_one_of(problem.x.layout, Layout::nhwc, Layout::nchw) &&
         is_one_of(problem.y.layout, Layout::nhwc, Layout::nchw16c) &&
         problem.x.shape[1] <= max_channels && problem.y.shape[1] % few_channels_block == 0 &&
         problem.window.kernel_h <= max_kernel && problem.window.kernel_w <= max_kernel &&
         problem.window.pad_left < problem.window.kernel_w;
}

// The lines of x that the windows of one row of y read. A line stays until another one takes its
// place, so each is copied once for consecutive rows.
class FewChannelsWeightsGradient::Lines {
 public:
  // buffer: line_floats of the problem for each line of a window.
  Lines(const FewChannelsProblem& problem, std::int64_t line_floats, const float* x, float* buffer)
      : problem_(&problem), line_floats_(line_floats), x_(x), buffer_(buffer) {
    held_.fill(-1);
  }

  // Returns the lines of the windows of a row of y, each from its first column on; null: outside.
  const std::array<const float*, max_kernel>& of(std::int64_t image, std::int64_t row) {
    const Window& window = problem_->window;
    const std::int64_t height = problem_->x.shape[2];
    for (std::int64_t r = 0; r < window.kernel_h; ++r) {
      const std::int64_t at = row * window.stride_h - window.pad_top + r;
      const bool inside = at >= 0 && at < height;
      lines_[static_cast<std::size_t>(r)] = inside ? line(image * height + at) : nullptr;
    }
    return lines_;
  }

 private:
  // Lines of one image that are fewer apart than a window has have different places.
  const float* line(std::int64_t number) {
    const std::int64_t place = number % problem_->window.kernel_h;
    float* const to = buffer_ + place * line_floats_;
    std::int64_t& held = held_[static_cast<std::size_t>(place)];
    if (held != number) {
      copy(number, to);
      held = number;
    }
    return to;
  }

  void copy(std::int64_t number, float* to) const {
    const Shape& x = problem_->x.shape;
    const std::int64_t channels = x[1], width = x[3], left = problem_->window.pad_left * channels;
    const std::int64_t count = std::min(width * channels, line_floats_ - left);
    std::fill_n(to, left, 0.0F);
    if (problem_->x.layout == Layout::nhwc) {
      std::copy_n(x_ + number * width * channels, count, to + left);
    } else {
      const std::int64_t image = number / x[2], row = number % x[2];
      for (std::int64_t i = 0; i < count; ++i) {
        to[left + i] = x_[((image * channels + i % channels) * x[2] + row) * width + i / channels];
      }
    }
    std::fill_n(to + left + count, line_floats_ - left - count, 0.0F);
  }

  const FewChannelsProblem* problem_;
  std::int64_t line_floats_;
  const float* x_;
  float* buffer_;
  std::array<std::int64_t, max_kernel> held_{};
  std::array<const float*, max_kernel> lines_{};
};

FewChannelsWeightsGradient::FewChannelsWeightsGradient(const FewChannelsProblem& problem,
                                                       const Loops& loops)
    : problem_(problem), loops_(&loops), team_(team_size()) {
  constexpr std::int64_t min_rows = 16;
  parts_ =
      std::clamp<std::int64_t>(problem.y.shape[0] * problem.y.shape[2] / min_rows, 1, max_parts);
}

std::int64_t FewChannelsWeightsGradient::line_floats() const {
  const Window& window = problem_.window;
  return ((problem_.y.shape[3] - 1) * window.stride_w + window.kernel_w) * problem_.x.shape[1];
}

std::size_t FewChannelsWeightsGradient::workspace() const {
  BumpAllocator allocator;
  carve(allocator);
  return allocator.bytes();
}

std::size_t FewChannelsWeightsGradient::traffic_between() const {
  return 2 * sizeof(float) * static_cast<std::size_t>(parts_ * sums());
}

FewChannelsWeightsGradient::Scratch FewChannelsWeightsGradient::carve(
    BumpAllocator& allocator) const {
  Scratch scratch{};
  scratch.parts = allocator.take<float>(parts_ * sums());
  scratch.total = allocator.take<float>(sums());
  scratch.bias = allocator.take<double>(problem_.bias ? parts_ * problem_.y.shape[1] : 0);
  scratch.lines = allocator.take<float>(team_ * problem_.window.kernel_h * line_floats());
  return scratch;
}

void FewChannelsWeightsGradient::operator()(const Operands& o) const {
  BumpAllocator allocator(o.workspace);
  const Scratch scratch = carve(allocator);
  parallel_for(team_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t share = begin; share < end; ++share) {
      float* const lines = scratch.lines + share * problem_.window.kernel_h * line_floats();
      for (std::int64_t i = parts_ * share / team_; i < parts_ * (share + 1) / team_; ++i) {
        run_part(o, i, scratch, lines);
      }
    }
  });
  add_parts(*loops_,
            {.from = scratch.parts,
             .parts = parts_,
             .stride = sums(),
             .count = sums(),
             .tile = few_channels_block},
            scratch.total);
  write_weights(scratch.total, o.out[0].as<float>().data());
  if (problem_.bias) {
    sum_parts(scratch.bias, parts_, problem_.y.shape[1], o.out[1].as<float>().data());
  }
}

void FewChannelsWeightsGradient::run_part(const Operands& o, std::int64_t part,
                                          const Scratch& scratch, float* lines) const {
  const Shape& y = problem_.y.shape;
  const std::int64_t outs = y[1], rows = y[0] * y[2], width = y[3];
  const bool nhwc = problem_.y.layout == Layout::nhwc;
  const float* const dy = o.in[1].as<float>().data();
  double* const bias = problem_.bias ? scratch.bias + part * outs : nullptr;
  Lines windows(problem_, line_floats(), o.in[0].as<float>().data(), lines);
  FewChannelsGradient gradient{
      .dy_pixel = nhwc ? outs : few_channels_block,
      .dy_block = nhwc ? few_channels_block : y[2] * width * few_channels_block,
      .outs = outs,
      .kernel_h = problem_.window.kernel_h,
      .line = problem_.line(),
      .step = problem_.window.stride_w * problem_.x.shape[1],
      .sums = scratch.parts + part * sums()};
  std::fill_n(gradient.sums, sums(), 0.0F);
  if (bias != nullptr) {
    std::fill_n(bias, outs, 0.0);
  }
  for (std::int64_t i = rows * part / parts_; i < rows * (part + 1) / parts_; ++i) {
    const std::int64_t image = i / y[2], row = i % y[2];
    gradient.dy = dy + (nhwc ? i * width * outs
                             : image * outs * y[2] * width + row * width * few_channels_block);
    add_row(gradient, windows.of(image, row), bias);
  }
}

void FewChannelsWeightsGradient::add_row(FewChannelsGradient gradient,
                                         std::span<const float* const> lines, double* bias) const {
  const float* const dy = gradient.dy;
  const std::int64_t width = problem_.y.shape[3], pieces = divide_up(width, max_pixels);
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const std::int64_t first = width * piece / pieces;
    std::array<const float*, max_kernel> shifted{};
    std::ranges::transform(lines, shifted.begin(), [&](const float* line) {
      return line == nullptr ? nullptr : line + first * gradient.step;
    });
    gradient.lines = shifted.data();
    gradient.dy = dy + first * gradient.dy_pixel;
    gradient.pixels = width * (piece + 1) / pieces - first;
    loops_->few_channels_gradient(gradient);
    if (bias != nullptr) {
      add_bias(gradient, bias);
    }
  }
}

// Adds the sums of dy over the pixels, which are few enough to be added in f32.
void FewChannelsWeightsGradient::add_bias(const FewChannelsGradient& gradient, double* bias) const {
  for (std::int64_t out = 0; out < gradient.outs; out += few_channels_block) {
    std::array<float, few_channels_block> sums{};
    const float* dy = gradient.dy + out / few_channels_block * gradient.dy_block;
    for (std::int64_t i = 0; i < gradient.pixels; ++i, dy += gradient.dy_pixel) {
      for (std::size_t k = 0; k < sums.size(); ++k) {
        sums[k] += dy[k];
      }
    }
    for (const float sum : sums) {
      *bias++ += static_cast<double>(sum);
    }
  }
}

// Writes blocks of `block` from blocks of 16 output channels.
void FewChannelsWeightsGradient::write_weights(const float* total, float* dw) const {
  const std::int64_t taps = problem_.taps(), block = problem_.block;
  for (std::int64_t out = 0; out < problem_.y.shape[1]; out += block) {
    const float* from =
        total + out / few_channels_block * few_channels_block * taps + out % few_channels_block;
    for (std::int64_t tap = 0; tap < taps; ++tap, from += few_channels_block) {
      dw = std::copy_n(from, block, dw);
    }
  }
}

}  // namespace cnn::layers::cpu
