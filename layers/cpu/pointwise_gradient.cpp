#include "layers/cpu/pointwise_gradient.h"

#include <algorithm>
#include <array>

#include "runtime/divide_up.h"

namespace cnn::layers::cpu {
namespace {

// The pixels of a segment, of 64 output channels and of 16 input channels, take 40 KiB, less than a
// first-level cache. The sums of a slab take at most 256 KiB, a part of a second-level cache.
constexpr std::int64_t max_segment_pixels = 128, max_slab_blocks = 16;

// Packed segments share a second-level cache of 512 KiB with the sums of a slab.
constexpr std::int64_t max_packed_pixels = 192;

}  // namespace

// There are enough parts for many threads, and each has enough pixels to outweigh the adding of its
// sums.
PointwiseWeightsGradient::PointwiseWeightsGradient(const PointwiseProblem& problem,
                                                   const Loops& loops)
    : problem_(problem),
      loops_(&loops),
      team_(team_size()),
      segments_per_range_(
          divide_up(problem.pixels(), problem.packs() ? max_packed_pixels : max_segment_pixels)) {
  constexpr std::int64_t enough_items = 16, pixels_per_part = 2048, min_pixels_per_part = 512;
  const std::int64_t slabs = slabs_in() * slabs_out();
  const std::int64_t pixels = problem.ranges() * problem.pixels();
  const std::int64_t wanted =
      std::max(pixels / pixels_per_part,
               std::min(divide_up(enough_items, slabs), pixels / min_pixels_per_part));
  parts_ = std::clamp<std::int64_t>(
      wanted, 1, std::min(divide_up(max_parts, slabs), problem.ranges() * segments_per_range_));
}

std::int64_t PointwiseWeightsGradient::slabs_in() const {
  return divide_up(problem_.in_blocks(), max_slab_blocks);
}
std::int64_t PointwiseWeightsGradient::slabs_out() const {
  return divide_up(problem_.out_blocks(), max_slab_blocks);
}

// Sums of a part take a power of two bytes in most networks; one more line keeps the parts, which
// reduce_parts() reads together, from the same sets of the cache.
std::int64_t PointwiseWeightsGradient::sums_of_part() const {
  return problem_.in_blocks() * problem_.out_blocks() * pointwise_tile + pointwise_block;
}

PointwiseWeightsGradient::Slab PointwiseWeightsGradient::slab(std::int64_t number) const {
  const std::int64_t in = number / slabs_out(), out = number % slabs_out();
  const std::int64_t first_in = problem_.in_blocks() * in / slabs_in();
  const std::int64_t first_out = problem_.out_blocks() * out / slabs_out();
  return {.first_in = first_in,
          .ins = problem_.in_blocks() * (in + 1) / slabs_in() - first_in,
          .first_out = first_out,
          .outs = problem_.out_blocks() * (out + 1) / slabs_out() - first_out};
}

std::int64_t PointwiseWeightsGradient::place_in_part(const Slab& slab) const {
  return (slab.first_in * problem_.out_blocks() + slab.first_out * slab.ins) * pointwise_tile;
}

PointwiseWeightsGradient::Segment PointwiseWeightsGradient::segment(std::int64_t number) const {
  const std::int64_t place = number % segments_per_range_;
  const std::int64_t first = problem_.pixels() * place / segments_per_range_;
  return {.range = number / segments_per_range_,
          .first = first,
          .count = problem_.pixels() * (place + 1) / segments_per_range_ - first};
}

std::int64_t PointwiseWeightsGradient::place_of(const Segment& pixels, std::int64_t blocks,
                                                std::int64_t block) const {
  return ((pixels.range * blocks + block) * problem_.pixels() + pixels.first) * pointwise_block;
}

std::size_t PointwiseWeightsGradient::workspace() const {
  BumpAllocator allocator;
  carve(allocator);
  return allocator.bytes();
}

std::size_t PointwiseWeightsGradient::traffic_between() const {
  return 2 * sizeof(float) * static_cast<std::size_t>(parts_ * sums_of_part());
}

PointwiseWeightsGradient::Scratch PointwiseWeightsGradient::carve(BumpAllocator& allocator) const {
  Scratch scratch{};
  scratch.sums = allocator.take<float>(parts_ * sums_of_part());
  scratch.bias = allocator.take<double>(problem_.bias ? parts_ * problem_.y.shape[1] : 0);
  scratch.packed = allocator.take<float>(problem_.packs() ? team_ * packed_each() : 0);
  return scratch;
}

void PointwiseWeightsGradient::operator()(const Operands& o) const {
  BumpAllocator allocator(o.workspace);
  const Scratch scratch = carve(allocator);
  const std::int64_t items = parts_ * slabs_in() * slabs_out();
  parallel_for(team_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t share = begin; share < end; ++share) {
      float* const packed = scratch.packed + share * packed_each();
      for (std::int64_t i = items * share / team_; i < items * (share + 1) / team_; ++i) {
        run_item(o, i, scratch, packed);
      }
    }
  });
  parallel_for(problem_.out_blocks(), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t block = first; block < last; ++block) {
      reduce_parts(scratch, block, o.out[0].as<float>().data());
    }
  });
  if (problem_.bias) {
    sum_parts(scratch.bias, parts_, problem_.y.shape[1], o.out[1].as<float>().data());
  }
}

// The part changes slowest: all slabs of a part read the same pixels.
void PointwiseWeightsGradient::run_item(const Operands& o, std::int64_t item,
                                        const Scratch& scratch, float* packed) const {
  const std::int64_t slabs = slabs_in() * slabs_out(), part = item / slabs;
  const Slab channels = slab(item % slabs);
  PointwiseGradient gradient{.in_blocks = channels.ins, .out_blocks = channels.outs};
  gradient.sums = scratch.sums + part * sums_of_part() + place_in_part(channels);
  double* const bias =
      problem_.bias && channels.first_in == 0
          ? scratch.bias + part * problem_.y.shape[1] + channels.first_out * pointwise_block
          : nullptr;
  if (bias != nullptr) {
    std::fill_n(bias, channels.outs * pointwise_block, 0.0);
  }
  const std::int64_t segments = problem_.ranges() * segments_per_range_;
  const std::int64_t end = segments * (part + 1) / parts_;
  for (std::int64_t i = segments * part / parts_; i < end; ++i) {
    const Segment pixels = segment(i);
    gradient.pixels = pixels.count;
    if (problem_.packs()) {
      pack(o, pixels, channels, packed, gradient);
    } else {
      place(o, pixels, channels, gradient);
      gradient.x_next = i + 1 < end
                            ? o.in[0].as<float>().data() +
                                  place_of(segment(i + 1), problem_.in_blocks(), channels.first_in)
                            : nullptr;
    }
    loops_->pointwise_gradient(gradient);
    gradient.add = true;
    if (bias != nullptr) {
      add_bias(gradient, bias);
    }
  }
}

// Points to the pixels where they are.
void PointwiseWeightsGradient::place(const Operands& o, const Segment& pixels, const Slab& channels,
                                     PointwiseGradient& gradient) const {
  gradient.x_block = gradient.dy_block = problem_.pixels() * pointwise_block;
  gradient.x =
      o.in[0].as<float>().data() + place_of(pixels, problem_.in_blocks(), channels.first_in);
  gradient.dy =
      o.in[1].as<float>().data() + place_of(pixels, problem_.out_blocks(), channels.first_out);
}

// Copies the pixels, block by block of channels. In place, neighbours of nhwc images would lie as
// far apart as a pixel has channels, and compete for the same sets of the caches.
void PointwiseWeightsGradient::pack(const Operands& o, const Segment& pixels, const Slab& channels,
                                    float* packed, PointwiseGradient& gradient) const {
  gradient.x_block = gradient.dy_block = pixels.count * pointwise_block;
  gradient.x = packed;
  gradient.dy = packed + packed_x();
  const BlockStrides of_x = block_strides(problem_.x), of_y = block_strides(problem_.y);
  const TypedLoops& loops = loops_of(*loops_, problem_.x.type);
  const auto size = static_cast<std::int64_t>(size_of(problem_.x.type));
  GatherPixels gather{.to_pixel = pointwise_block, .to_block = gradient.x_block};
  each_run(
      problem_.pixels_of_x(), pixels.first, pixels.count,
      [&](const PixelRun& run, std::int64_t before) {
        gather.pixels = run.count;
        gather.from = o.in[0].data + size * of_x.place(run.image, channels.first_in, run.first_x);
        gather.to = packed + before * pointwise_block;
        gather.blocks = channels.ins;
        gather.from_pixel = run.step_x * of_x.pixel;
        gather.from_block = of_x.block;
        loops.gather(gather);
        gather.from = o.in[1].data + size * of_y.place(run.image, channels.first_out, run.first_y);
        gather.to += packed_x();
        gather.blocks = channels.outs;
        gather.from_pixel = of_y.pixel;
        gather.from_block = of_y.block;
        loops.gather(gather);
      });
}

std::int64_t PointwiseWeightsGradient::packed_x() const {
  return max_packed_pixels * std::min(max_slab_blocks, problem_.in_blocks()) * pointwise_block;
}

std::int64_t PointwiseWeightsGradient::packed_each() const {
  return packed_x() +
         max_packed_pixels * std::min(max_slab_blocks, problem_.out_blocks()) * pointwise_block;
}

void PointwiseWeightsGradient::add_bias(const PointwiseGradient& gradient, double* bias) const {
  for (std::int64_t block = 0; block < gradient.out_blocks; ++block) {
    std::array<float, pointwise_block> sums{};
    loops_->f32.column_sums(gradient.dy + block * gradient.dy_block, gradient.pixels,
                            pointwise_block, sums.data());
    for (const float sum : sums) {
      *bias++ += static_cast<double>(sum);
    }
  }
}

void PointwiseWeightsGradient::reduce_parts(const Scratch& scratch, std::int64_t out_block,
                                            float* dw) const {
  std::array<const void*, max_parts> parts{};
  float* to = dw + out_block * problem_.in_blocks() * pointwise_tile;
  for (std::int64_t i = 0; i < slabs_in() * slabs_out(); ++i) {
    const Slab channels = slab(i);
    if (out_block < channels.first_out || out_block >= channels.first_out + channels.outs) {
      continue;
    }
    const std::int64_t count = channels.ins * pointwise_tile;
    const float* const from =
        scratch.sums + place_in_part(channels) + (out_block - channels.first_out) * count;
    for (std::int64_t part = 0; part < parts_; ++part) {
      parts[static_cast<std::size_t>(part)] = from + part * sums_of_part();
    }
    loops_->f32.add({.x = parts.data(), .inputs = parts_, .y = to, .n = count});
    to += count;
  }
}

}  // namespace cnn::layers::cpu
