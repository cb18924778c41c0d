#include <algorithm>
#include <bit>

#include "layers/cpu/winograd_parts.h"
#include "runtime/divide_up.h"

namespace cnn::layers::cpu {
namespace {

// Channels of a slab, and tiles that are transformed together. The sums of a slab are read and
// written once for each block of tiles, which are transformed once for each slab of the other
// channels.
struct SlabSizes {
  std::int64_t slab_in, slab_out, tiles;
};

// With AVX-512 products are so fast that sums should lie in the second-level cache beside the
// tiles: with F(4x4, 3x3) they take 1.1 MiB. Measured on AlexNet, ResNet-50 and VGG-16: the other
// sizes take 4 % to 8 % longer. With AVX2 larger slabs cost nothing and smaller ones up to 10 %.
SlabSizes slab_sizes(const WinogradLoops& loops) {
  constexpr std::int64_t panel_of_avx512 = 32;
  return loops.panel >= panel_of_avx512 ? SlabSizes{.slab_in = 128, .slab_out = 64, .tiles = 96}
                                        : SlabSizes{.slab_in = 128, .slab_out = 192, .tiles = 48};
}

// The taps of all parts together, in floats: 32 MiB, unless there is but one part.
constexpr std::int64_t max_taps = 8 << 20;

// Returns the channels per slab for the fewest slabs of at most `most` channels, as equal as whole
// blocks permit.
std::int64_t even_slab(std::int64_t channels, std::int64_t most) {
  const std::int64_t slabs = divide_up(channels, most);
  const std::int64_t blocks = channels / winograd_block;
  return divide_up(blocks, slabs) * winograd_block;
}

}  // namespace

WinogradWeightsGradient::WinogradWeightsGradient(const WinogradProblem& problem, bool bias,
                                                 const WinogradLoops& loops)
    : problem_(problem), bias_(bias), loops_(&loops), team_(team_size()) {
  const std::int64_t in = problem.x.shape[1], out = problem.y.shape[1];
  const SlabSizes sizes = slab_sizes(loops);
  slab_in_ = even_slab(in, sizes.slab_in);
  slab_out_ = even_slab(out, sizes.slab_out);
  slabs_in_ = divide_up(in, slab_in_);
  slabs_out_ = divide_up(out, slab_out_);
  constexpr std::int64_t items = 64, min_points = 8192;
  const std::int64_t most = std::max<std::int64_t>(max_taps / (problem.form.taps() * in * out), 1);
  const std::int64_t wanted = std::min(divide_up(items, slabs()), most);
  const std::int64_t points = problem.tiles() * problem.form.points();
  // Powers of two keep threads equally busy where parts are few.
  const std::uint64_t parts = std::bit_ceil(
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(points / min_points, 1, wanted)));
  parts_ = static_cast<std::int64_t>(parts);
  if (parts_ > wanted) {
    parts_ /= 2;
  }
}

std::size_t WinogradWeightsGradient::workspace() const {
  BumpAllocator allocator;
  carve(allocator);
  return allocator.bytes();
}

WinogradWeightsGradient::Scratch WinogradWeightsGradient::carve(BumpAllocator& allocator) const {
  const std::int64_t in = problem_.x.shape[1], out = problem_.y.shape[1];
  Scratch scratch{};
  scratch.taps = allocator.take<float>(parts_ * problem_.form.taps() * in * out);
  scratch.bias = allocator.take<double>(bias_ ? parts_ * out : 0);
  scratch.own_each = sums() + loops_->gradient_scratch(slab_out_, slab_sizes(*loops_).tiles);
  scratch.own = allocator.take<float>(scratch.own_each * team_);
  return scratch;
}

void WinogradWeightsGradient::operator()(const Operands& o) const {
  BumpAllocator allocator(o.workspace);
  const Scratch scratch = carve(allocator);
  parallel_for(team_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t items = parts_ * slabs();
      for (std::int64_t item = items * i / team_; item < items * (i + 1) / team_; ++item) {
        run_item(o, item, scratch, scratch.own + i * scratch.own_each);
      }
    }
  });
  const std::int64_t in = problem_.x.shape[1], out = problem_.y.shape[1];
  const WinogradTaps taps{.taps = scratch.taps,
                          .parts = parts_,
                          .in = in,
                          .out = out,
                          .slab_in = slab_in_,
                          .slab_out = slab_out_};
  parallel_for(out / winograd_block, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      loops_->join(taps, i * winograd_block, o.out[0].as<float>().data());
    }
  });
  if (bias_) {
    sum_parts(scratch.bias, parts_, problem_.y.shape[1], o.out[1].as<float>().data());
  }
}

// Parts change slowest: the slabs of a part read the same pixels.
void WinogradWeightsGradient::run_item(const Operands& o, std::int64_t item, const Scratch& scratch,
                                       float* own) const {
  const std::int64_t in = problem_.x.shape[1], out = problem_.y.shape[1];
  const std::int64_t part = item / slabs(), slab = item % slabs();
  WinogradGradient winograd_gradient{.x_image = image_of(problem_.x),
                                     .y_image = image_of(problem_.y),
                                     .tiles = problem_.cover(),
                                     .x = o.in[0].data,
                                     .dy = o.in[1].data};
  winograd_gradient.first_in = slab / slabs_out_ * slab_in_;
  winograd_gradient.first_out = slab % slabs_out_ * slab_out_;
  winograd_gradient.ins = std::min(slab_in_, in - winograd_gradient.first_in);
  winograd_gradient.outs = std::min(slab_out_, out - winograd_gradient.first_out);
  winograd_gradient.sums = own;
  if (bias_ && winograd_gradient.first_in == 0) {
    winograd_gradient.bias = scratch.bias + part * out + winograd_gradient.first_out;
    std::fill_n(winograd_gradient.bias, winograd_gradient.outs, 0.0);
  }
  std::fill_n(own, sums(), 0.0F);
  const auto gradient = (problem_.x.type == DataType::f32 ? loops_->f32 : loops_->bf16).gradient;
  const std::int64_t tiles = problem_.tiles();
  in_blocks(tiles * part / parts_, tiles * (part + 1) / parts_, slab_sizes(*loops_).tiles,
            [&](std::int64_t first, std::int64_t count) {
              gradient(winograd_gradient, {first, count}, own + sums());
            });
  float* const taps =
      scratch.taps + problem_.form.taps() * (part * in * out + winograd_gradient.first_in * out +
                                             winograd_gradient.first_out * winograd_gradient.ins);
  loops_->taps(own, winograd_gradient.ins, winograd_gradient.outs, taps);
}

}  // namespace cnn::layers::cpu
