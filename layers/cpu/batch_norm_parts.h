#pragma once

#include <cstdint>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"

// What the kernels of batch normalisation share.
namespace cnn::layers::cpu {

// The pixels of each group of channels in chunks: the unit of parallel work and of partial sums.
// The number of chunks depends on the shape only, so results do not depend on the number of
// threads. Item i is chunk i % per_group of group i / per_group.
struct Chunks {
  explicit Chunks(const TensorDesc& image);

  std::int64_t items() const { return blocks.groups * per_group; }
  std::int64_t first(std::int64_t chunk) const { return blocks.pixels() * chunk / per_group; }
  std::int64_t first_channel(std::int64_t item) const { return item / per_group * blocks.columns; }
  std::int64_t grain() const;  // items worth a thread

  // visit(offset in elements, rows) for each part of an item's pixels that lies together.
  template <class Visit>
  void visit_item(std::int64_t item, const Visit& visit) const {
    const std::int64_t chunk = item % per_group;
    each_run(blocks, item / per_group, first(chunk), first(chunk + 1), visit);
  }

  Blocks blocks;
  std::int64_t per_group = 1;
  std::int64_t bytes_per_group = 0;
};

// Sixteen channels of a group, or what is left of it.
struct Unit {
  std::int64_t group = 0, column = 0, columns = 0;
};

// Two passes over images: first(item) for all chunks of a group, then between(unit) for its
// channels, then second(item). If what both passes read, `images` of them, fits the second-level
// cache group by group, each group is finished before the next begins.
template <class First, class Between, class Second>
void two_passes(const Chunks& chunks, std::int64_t images, const First& first,
                const Between& between, const Second& second) {
  constexpr std::int64_t cache_bytes = 1 << 20;
  const std::int64_t columns = chunks.blocks.columns;
  const auto unit = [&](std::int64_t group, std::int64_t column) {
    between(Unit{group, column, columns - column < 16 ? columns - column : 16});
  };
  if (images * chunks.bytes_per_group <= cache_bytes && chunks.blocks.groups >= team_size()) {
    const std::int64_t grain = (chunks.grain() + chunks.per_group - 1) / chunks.per_group;
    parallel_for(chunks.blocks.groups, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t group = begin; group < end; ++group) {
        for (std::int64_t chunk = 0; chunk < chunks.per_group; ++chunk) {
          first(group * chunks.per_group + chunk);
        }
        for (std::int64_t column = 0; column < columns; column += 16) {
          unit(group, column);
        }
        for (std::int64_t chunk = chunks.per_group; chunk-- > 0;) {
          second(group * chunks.per_group + chunk);
        }
      }
    });
    return;
  }
  parallel_for(chunks.items(), chunks.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      first(item);
    }
  });
  const std::int64_t units = (columns + 15) / 16;
  parallel_for(chunks.blocks.groups * units, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      unit(i / units, i % units * 16);
    }
  });
  // Backwards: what the first pass read last is still in the cache.
  parallel_for(chunks.items(), chunks.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = end; item-- > begin;) {
      second(item);
    }
  });
}

// Vectors by channel, [C]; gamma may be null, for one.
struct BatchNormVectors {
  const float *gamma = nullptr, *beta = nullptr, *mean = nullptr, *variance = nullptr;
};

// What the loops take, with padded channels: (x - mean) * scale + shift. Scale is
// gamma / sqrt(variance + epsilon), shift is beta. One function computes it for all passes: the
// gradient finds the sign of the output by the very numbers of the forward pass.
struct Factors {
  Factors(Carver& carver, std::int64_t padded_channels);
  // Channels [first, first + real) from the vectors, zeros up to first + count.
  void set(const BatchNormVectors& from, double epsilon, std::int64_t first, std::int64_t real,
           std::int64_t count) const;

  float *mean = nullptr, *scale = nullptr, *shift = nullptr;
};

// The channels of [first, first + count) that exist.
std::int64_t real_channels(std::int64_t first, std::int64_t count, const TensorDesc& image);

// 1 / sqrt(variance + epsilon), in double.
double inverse_deviation(float variance, double epsilon);

}  // namespace cnn::layers::cpu
