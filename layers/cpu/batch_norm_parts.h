#pragma once

#include <array>
#include <cstdint>

#include "layers/batch_norm.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "runtime/divide_up.h"

// Code that all batch normalisation kernels share.
namespace cnn::layers::cpu {

// A contiguous part of an image: `rows` pixels of a group of channels.
struct Run {
  std::int64_t group = 0;
  std::int64_t item = 0;    // index of the run's partial sums
  std::int64_t before = 0;  // pixels of the item in earlier runs
  std::int64_t offset = 0;  // in elements
  std::int64_t rows = 0;
};

struct Groups {
  std::int64_t begin = 0, end = 0;
};

// Splits the pixels of each group of channels into chunks, the units of parallel work and of
// partial sums. The number of chunks depends on the shape only, so results do not depend on the
// number of threads. Item i is chunk i % per_group of group i / per_group.
struct Chunks {
  explicit Chunks(const TensorDesc& image);

  std::int64_t items() const { return blocks.groups * per_group; }
  std::int64_t first(std::int64_t chunk) const { return blocks.pixels() * chunk / per_group; }
  std::int64_t grain() const;  // fewest items that justify a thread

  // Calls visit(run) for all pixels of a chunk in the groups [begin, end), in memory order.
  template <class Visit>
  void each_run(std::int64_t chunk, std::int64_t begin, std::int64_t end,
                const Visit& visit) const {
    const std::int64_t last = first(chunk + 1);
    for (std::int64_t pixel = first(chunk), rows = 0; pixel < last; pixel += rows) {
      const std::int64_t segment = pixel / blocks.rows;
      const std::int64_t row = pixel % blocks.rows;
      rows = last - pixel < blocks.rows - row ? last - pixel : blocks.rows - row;
      for (std::int64_t group = begin; group < end; ++group) {
        visit(
            Run{.group = group,
                .item = group * per_group + chunk,
                .before = pixel - first(chunk),
                .offset = ((segment * blocks.groups + group) * blocks.rows + row) * blocks.columns,
                .rows = rows});
      }
    }
  }

  // Calls visit(run) for all chunks on all threads; `backwards` begins with the last ones.
  template <class Visit>
  void each_run_in_parallel(Groups groups, bool backwards, const Visit& visit) const {
    const std::int64_t width = groups.end - groups.begin;
    parallel_for(width * per_group, grain(), [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {  // groups change fastest: they are neighbours in memory
        const std::int64_t chunk = (backwards ? end - 1 : begin) / width;
        const std::int64_t base = chunk * width;
        const std::int64_t from = begin > base ? begin : base;
        const std::int64_t to = end < base + width ? end : base + width;
        each_run(chunk, groups.begin + from - base, groups.begin + to - base, visit);
        (backwards ? end : begin) = backwards ? from : to;
      }
    });
  }

  Blocks blocks;
  std::int64_t per_group = 1;
  std::int64_t bytes_per_group = 0;
};

// Up to sixteen channels of a group.
struct Unit {
  std::int64_t group = 0, column = 0, columns = 0;
};

// Calls between(unit) for all channels of a group.
template <class Between>
void each_unit(const Blocks& blocks, std::int64_t group, const Between& between) {
  for (std::int64_t column = 0; column < blocks.columns; column += 16) {
    const std::int64_t left = blocks.columns - column;
    between(Unit{group, column, left < 16 ? left : 16});
  }
}

// The two passes of two_passes(): each thread takes `fitting` groups at a time.
template <class First, class Between, class Second>
void group_by_group(const Chunks& chunks, std::int64_t fitting, const First& first,
                    const Between& between, const Second& second) {
  const std::int64_t grain = divide_up(chunks.grain(), chunks.per_group);
  parallel_for(chunks.blocks.groups, grain, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; begin += fitting) {
      const std::int64_t last = begin + fitting < end ? begin + fitting : end;
      for (std::int64_t chunk = 0; chunk < chunks.per_group; ++chunk) {
        chunks.each_run(chunk, begin, last, first);
      }
      for (std::int64_t group = begin; group < last; ++group) {
        each_unit(chunks.blocks, group, between);
      }
      for (std::int64_t chunk = chunks.per_group; chunk-- > 0;) {
        chunks.each_run(chunk, begin, last, second);
      }
    }
  });
}

// The two passes of two_passes() over some groups, with all threads together.
template <class First, class Between, class Second>
void groups_together(const Chunks& chunks, Groups groups, const First& first,
                     const Between& between, const Second& second) {
  chunks.each_run_in_parallel(groups, false, first);
  const Blocks& blocks = chunks.blocks;
  const std::int64_t units = divide_up(blocks.columns, 16);
  parallel_for((groups.end - groups.begin) * units, 16, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      const std::int64_t column = i % units * 16;
      const std::int64_t left = blocks.columns - column;
      between(Unit{groups.begin + i / units, column, left < 16 ? left : 16});
    }
  });
  chunks.each_run_in_parallel(groups, true, second);  // the pixels read last are still in the cache
}

// Makes two passes over images: first(run) for all pixels of a group, then between(unit) for its
// channels, then second(run). Batches of groups are sized so that the second pass finds the data of
// the first, from `images` tensors, in a cache: each thread's second-level cache, or the shared
// third-level one.
template <class First, class Between, class Second>
void two_passes(const Chunks& chunks, std::int64_t images, const First& first,
                const Between& between, const Second& second) {
  constexpr std::int64_t second_level = 1 << 20, third_level = 16 << 20;
  const std::int64_t groups = chunks.blocks.groups;
  const std::int64_t bytes = images * chunks.bytes_per_group;
  if (bytes <= second_level && groups >= team_size()) {
    group_by_group(chunks, second_level / bytes, first, between, second);
    return;
  }
  // Two or more items for each thread balance the load.
  const std::int64_t busy = divide_up(std::int64_t{2} * team_size(), chunks.per_group);
  const std::int64_t width = third_level / bytes > busy ? third_level / bytes : busy;
  for (std::int64_t begin = 0; begin < groups; begin += width) {
    const std::int64_t end = begin + width < groups ? begin + width : groups;
    groups_together(chunks, {begin, end}, first, between, second);
  }
}

// Vectors by channel, [C]; a null gamma means one.
struct BatchNormVectors {
  const float *gamma = nullptr, *beta = nullptr, *mean = nullptr, *variance = nullptr;
};

// Returns the vectors among the inputs of an op with mean and variance as inputs.
inline BatchNormVectors vectors_among(std::span<const TensorView> in, bool scale) {
  const NormOperandIndices place(scale);
  return {.gamma = scale ? in[place.gamma].as<float>().data() : nullptr,
          .beta = in[place.beta].as<float>().data(),
          .mean = in[place.mean].as<float>().data(),
          .variance = in[place.variance].as<float>().data()};
}

struct ChannelMoments {
  double mean = 0, variance = 0;
};

// The factors of the loops, with padded channels: (x - mean) (scale + scale_rest) + shift. The
// scale is gamma / sqrt(variance + epsilon); the shift is beta plus the rounding error of the mean.
// The rounding error of a factor would be equal at every pixel of a channel, and deep networks
// amplify it, so the forward pass uses moments before rounding. The gradient uses the stored
// moments: it may see another sign of an output that is zero to f32's last digit.
struct Factors {
  Factors(BumpAllocator& allocator, std::int64_t padded_channels);
  // Sets the factors of channel c.
  void set(std::int64_t c, const ChannelMoments& moments, double gamma, double beta,
           double epsilon) const;
  // Sets channels [first, first + real) from the vectors, zeros up to first + count.
  void set(const BatchNormVectors& from, double epsilon, std::int64_t first, std::int64_t real,
           std::int64_t count) const;
  void clear(std::int64_t begin, std::int64_t end) const;  // sets zeros

  float *mean = nullptr, *scale = nullptr, *scale_rest = nullptr, *shift = nullptr;
};

// The moments of a unit's channels over all pixels.
struct MergedMoments {
  std::array<double, 16> mean{}, squares{};
};
// Merges the moments of chunks, by item and column as in Moments, by the formula of
// simd/matrix_loops.h.
MergedMoments merge(const Chunks& chunks, const double* mean, const double* squares,
                    const Unit& unit);

// The sums of g and of g (x - m) of a unit's channels over all pixels.
struct GradientSums {
  std::array<double, 16> sum{}, product{};
};
// Adds the sums of chunks: for each item those of g, then those of g (x - m), by column.
GradientSums merge_sums(const Chunks& chunks, const double* sums, const Unit& unit);

// Returns the number of channels of [first, first + count) that exist, without padding.
std::int64_t real_channels(std::int64_t first, std::int64_t count, const TensorDesc& image);

// Returns the gate of the gradient of a norm whose output is not an operand: that of its ReLU,
// recomputed from x, or an open one.
inline Gate gate_from_x(const BatchNormAttributes& a) {
  const Gate of_relu = a.is_limited() ? Gate::recomputed_with_limit : Gate::recomputed;
  return a.relu ? of_relu : Gate::open;
}

// Returns the bits of a run's pixels and channels in a mask (see layers/relu_mask.h). A mask has
// planes of eight channels if the image has blocks of sixteen, else the image's layout.
GateBits gate_bits_of(const TensorView& mask, const Blocks& image, const Run& run);

// Returns `request` with images of values in this layout, and masks as gate_bits_of() takes them.
KernelSpec in_layout_with_mask(const Signature& request, Layout layout);

// Adds a row for an op that Work computes in two passes over its first input.
template <class O, class Work>
void add_two_pass_row(KernelTable& table, const Loops& loops) {
  table.add<O>(
      [&loops](const O& op, const Signature& request) -> std::optional<KernelSpec> {
        if (!is_vectorised(request.in[0].type)) {
          return std::nullopt;
        }
        KernelSpec spec = in_layout_with_mask(request, channels_together(request));
        spec.workspace = Work(op, spec.in[0], loops).workspace();
        return spec;
      },
      [&loops](const O& op, const Signature& s) { return own_kernel(Work(op, s.in[0], loops)); });
}

// Returns 1 / sqrt(variance + epsilon), in double.
double inverse_deviation(float variance, double epsilon);

}  // namespace cnn::layers::cpu
