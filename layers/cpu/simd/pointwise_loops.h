#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "layers/cpu/simd/pointwise.h"
#include "layers/cpu/simd/small_gemm.h"

// The loops of 1 x 1 convolutions, as templates of the vector type V.
namespace cnn::layers::cpu {

template <class V>
class PointwiseGradientLoop {
 public:
  // Takes as many output channels at a time as one product has: blocks, or one of two vectors. They
  // stay in the first-level cache while all blocks of input channels pass.
  static void run(const PointwiseGradient& gradient) {
    for (std::int64_t out = 0; out < gradient.out_blocks; out += together) {
      for (std::int64_t in = 0; in < gradient.in_blocks; ++in) {
        multiply(gradient, in, out);
      }
    }
  }

 private:
  static constexpr bool whole_blocks = V::width == pointwise_block;
  static constexpr std::int64_t together =
      whole_blocks ? static_cast<std::int64_t>(SmallGemm<V>::max_vectors) : 1;

  static void multiply(const PointwiseGradient& gradient, std::int64_t in, std::int64_t out) {
    const std::int64_t left = gradient.out_blocks - out;
    const std::int64_t blocks = left < together ? left : together;
    GemmTask task{.a = gradient.x + in * gradient.x_block,
                  .b = gradient.dy + out * gradient.dy_block,
                  .c = gradient.sums + (out * gradient.in_blocks + in) * pointwise_tile,
                  .rows = pointwise_block,
                  .depth = gradient.pixels,
                  .columns = blocks * pointwise_block,
                  .a_row = 1,
                  .a_step = pointwise_block,
                  .b_step = pointwise_block,
                  .b_vector = whole_blocks ? gradient.dy_block : V::width,
                  .c_row = pointwise_block,
                  .c_vector = whole_blocks ? gradient.in_blocks * pointwise_tile : V::width,
                  .add = gradient.add};
    if (in == 0 && left > together) {  // the next panel of dy, one block for each group of rows
      task.prefetch = gradient.dy + (out + together) * gradient.dy_block;
      task.prefetch_row = left > together + 1 ? gradient.dy_block : 0;
    } else if (left <= together && gradient.x_next != nullptr) {
      task.prefetch = gradient.x_next + in * gradient.x_block;
    }
    SmallGemm<V>::multiply_block(task);
  }
};

// Each element of y is summed in the order of the input channels, whatever pixels a call has.
template <class V>
class PointwiseProductLoop {
 public:
  // The pixels of a call for which it pays to read weights: a few groups reuse each part of them,
  // and their results stay in a cache. Measured on ResNet-50's layers: on a Zen 3 with AVX2, 96 are
  // up to 8 % slower than 24; on a Xeon with AVX-512, 96, 192 and 384 are about equally fast.
  static constexpr std::int64_t pixels_together = V::width == 16 ? max_product_pixels : 24;

  // Multiplies with a panel of output channels at a time, and with as many input channels as let
  // their weights stay in the first-level cache while all pixels pass.
  static void run(const PointwiseProduct& product) {
    const std::int64_t blocks = product.ins / pointwise_block;
    const std::int64_t parts = (blocks + max_blocks - 1) / max_blocks;
    for (std::int64_t out = 0; out < product.outs; out += panel) {
      for (std::int64_t i = 0; i < parts; ++i) {
        const std::int64_t first = blocks * i / parts;
        multiply(product, {.out = out,
                           .first = first,
                           .blocks = blocks * (i + 1) / parts - first,
                           .is_last = i + 1 == parts});
      }
    }
  }

 private:
  using Float = typename V::Float;
  using All = typename V::All;

  static constexpr bool whole_blocks = V::width == pointwise_block;
  static constexpr int max_vectors = SmallGemm<V>::max_vectors;
  static constexpr std::int64_t panel = max_vectors * V::width;
  // The part of w that all pixels of a call multiply takes 16 KiB with AVX2, 32 KiB with AVX-512.
  static constexpr std::int64_t max_blocks = whole_blocks ? 8 : 16;

  // Output channels from `out` on, and some blocks of input channels.
  struct Part {
    std::int64_t out, first, blocks;
    bool is_last;
  };
  // Some pixels and vectors of output channels.
  struct Tile {
    const float *x, *w;
    float* y;
    std::int64_t blocks, x_pixel, x_block, w_vector, y_pixel, y_vector;
    bool add = false, relu = false;
    const float *bias = nullptr, *residual = nullptr;
  };
  using Kernel = void (*)(const Tile&);

  static void multiply(const PointwiseProduct& product, const Part& part) {
    const std::int64_t left = product.outs - part.out;
    const auto vectors = static_cast<int>((left < panel ? left : panel) / V::width);
    const std::int64_t y_vector = whole_blocks ? product.y_block : V::width;
    const std::int64_t to = part.out / pointwise_block * product.y_block;
    Tile tile{.w = product.w + part.out * product.ins + part.first * pointwise_tile,
              .blocks = part.blocks,
              .x_pixel = product.x_pixel,
              .x_block = product.x_block,
              .w_vector = whole_blocks ? product.ins * V::width : V::width,
              .y_pixel = product.y_pixel,
              .y_vector = y_vector,
              .add = part.first > 0};
    if (part.is_last) {
      tile.relu = product.relu;
      tile.bias = product.bias == nullptr ? nullptr : product.bias + part.out;
    }
    for (std::int64_t i = 0; i < product.run_count; ++i) {
      const PointwiseRun& run = product.runs[i];
      tile.x = run.x + part.first * product.x_block;
      tile.y = run.y + to;
      tile.residual = part.is_last && run.residual != nullptr ? run.residual + to : nullptr;
      multiply_run(tile, run.pixels, vectors);
    }
  }

  static void multiply_run(Tile tile, std::int64_t pixels, int vectors) {
    const Kernel* const kernels = by_vectors[static_cast<std::size_t>(vectors - 1)];
    const std::int64_t most = SmallGemm<V>::max_rows(vectors), groups = (pixels + most - 1) / most;
    const std::int64_t count = pixels / groups, longer = pixels - count * groups;
    for (std::int64_t i = 0; i < groups; ++i) {
      const std::int64_t of_group = i < longer ? count + 1 : count;
      kernels[of_group - 1](tile);
      tile.x += of_group * tile.x_pixel;
      tile.y += of_group * tile.y_pixel;
      tile.residual = tile.residual == nullptr ? nullptr : tile.residual + of_group * tile.y_pixel;
    }
  }

  template <int pixels, int vectors>
  [[gnu::always_inline]] static void begin_sums(const Tile& tile, Float (&sums)[pixels * vectors]) {
    if (tile.add) {
#pragma GCC unroll 24
      for (int i = 0; i < pixels * vectors; ++i) {
        sums[i] = V::load(tile.y + place<vectors>(tile, i), All{});
      }
      return;
    }
#pragma GCC unroll 24
    for (int i = 0; i < pixels * vectors; ++i) {
      __builtin_prefetch(tile.y + place<vectors>(tile, i), 1);  // often in no cache
      sums[i] = V::zero();
    }
  }

  template <int pixels, int vectors>
  [[gnu::always_inline]] static void finish(const Tile& tile, Float (&sums)[pixels * vectors]) {
    if (tile.bias != nullptr) {
#pragma GCC unroll 24
      for (int i = 0; i < pixels * vectors; ++i) {
        sums[i] = sums[i] + V::load(tile.bias + i % vectors * V::width, All{});
      }
    }
    if (tile.residual != nullptr) {
#pragma GCC unroll 24
      for (int i = 0; i < pixels * vectors; ++i) {
        sums[i] = sums[i] + V::load(tile.residual + place<vectors>(tile, i), All{});
      }
    }
    if (tile.relu) {
#pragma GCC unroll 24
      for (int i = 0; i < pixels * vectors; ++i) {
        sums[i] = V::max(V::zero(), sums[i]);
      }
    }
  }

  template <int vectors>
  [[gnu::always_inline]] static std::int64_t place(const Tile& tile, int i) {
    return i / vectors * tile.y_pixel + i % vectors * tile.y_vector;
  }

  // Has a pointer for each three pixels and each two vectors of w, as an address has one register
  // times 1 or 2 beside its base.
  template <int pixels, int vectors>
  static void kernel(const Tile& tile) {
    constexpr int unrolled = 4, x_pointers = (pixels + 2) / 3, w_pointers = (vectors + 1) / 2;
    Float sums[pixels * vectors];
    begin_sums<pixels, vectors>(tile, sums);
    const std::int64_t x_pixel = tile.x_pixel, w_vector = tile.w_vector;
    const float *x[x_pointers], *w[w_pointers];
#pragma GCC unroll 4
    for (int i = 0; i < x_pointers; ++i) {
      x[i] = tile.x + 3 * x_pixel * i;
    }
#pragma GCC unroll 2
    for (int i = 0; i < w_pointers; ++i) {
      w[i] = tile.w + 2 * w_vector * i;
    }
    const std::int64_t to_next_block = tile.x_block - pointwise_block;
    for (std::int64_t block = tile.blocks; block > 0; --block) {
#pragma GCC unroll 12
      for (int p = 0; p < pixels; ++p) {
        __builtin_prefetch(x[p / 3] + (pixels + p % 3) * x_pixel);
      }
#pragma GCC unroll 1
      for (int step = 0; step < pointwise_block; step += unrolled) {
#pragma GCC unroll 4
        for (int channel = 0; channel < unrolled; ++channel) {
          Float factors[vectors];
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) {
            factors[v] = V::load(w[v / 2] + v % 2 * w_vector + channel * pointwise_block, All{});
          }
#pragma GCC unroll 12
          for (int p = 0; p < pixels; ++p) {
            const Float element = V::set(x[p / 3][p % 3 * x_pixel + channel]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) {
              sums[p * vectors + v] = V::fma(element, factors[v], sums[p * vectors + v]);
            }
          }
        }
#pragma GCC unroll 4
        for (int i = 0; i < x_pointers; ++i) {
          x[i] += unrolled;
        }
#pragma GCC unroll 2
        for (int i = 0; i < w_pointers; ++i) {
          w[i] += unrolled * pointwise_block;
        }
      }
#pragma GCC unroll 4
      for (int i = 0; i < x_pointers; ++i) {
        x[i] += to_next_block;
      }
    }
    finish<pixels, vectors>(tile, sums);
#pragma GCC unroll 24
    for (int i = 0; i < pixels * vectors; ++i) {
      V::store(tile.y + place<vectors>(tile, i), sums[i], All{});
    }
  }

  template <int vectors, int... less>
  static constexpr auto kernels_for(std::integer_sequence<int, less...> /*pixels*/) {
    return std::array<Kernel, sizeof...(less)>{kernel<less + 1, vectors>...};
  }
  template <int vectors>
  static constexpr auto kernels =
      kernels_for<vectors>(std::make_integer_sequence<int, SmallGemm<V>::max_rows(vectors)>{});
  template <int... less>
  static constexpr auto all_kernels(std::integer_sequence<int, less...> /*vectors*/) {
    return std::array<const Kernel*, sizeof...(less)>{kernels<less + 1>.data()...};
  }
  static constexpr auto by_vectors = all_kernels(std::make_integer_sequence<int, max_vectors>{});
};

// Moves pixels between an image of type T and the f32 operands of a product, in the order in which
// the image lies in memory.
template <class V, class T>
struct PixelLoops {
  using Float = typename V::Float;
  using All = typename V::All;

  static void gather(const GatherPixels& gather) {
    const T* const from = static_cast<const T*>(gather.from);
    each_block(
        gather.pixels, gather.blocks, gather.from_block < gather.from_pixel,
        [&](std::int64_t pixel, std::int64_t block) __attribute__((always_inline)) {
          const T* const read = from + block * gather.from_block + pixel * gather.from_pixel;
          float* const write = gather.to + block * gather.to_block + pixel * gather.to_pixel;
          for (std::int64_t k = 0; k < pointwise_block; k += V::width) {
            V::store(write + k, V::load(read + k, All{}), All{});
          }
        });
  }

  static void scatter(const ScatterPixels& scatter) {
    each_block(
        scatter.pixels, scatter.blocks, scatter.to_block < scatter.to_pixel,
        [&](std::int64_t pixel, std::int64_t block) __attribute__((always_inline)) {
          for (std::int64_t k = 0; k < pointwise_block; k += V::width) {
            scatter_vector(scatter, pixel, block, k);
          }
        });
  }

 private:
  // Calls visit(pixel, block) for each block of channels of each pixel.
  template <class Visit>
  [[gnu::always_inline]] static void each_block(std::int64_t pixels, std::int64_t blocks,
                                                bool by_pixel, const Visit& visit) {
    if (by_pixel) {
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
        for (std::int64_t block = 0; block < blocks; ++block) {
          visit(pixel, block);
        }
      }
      return;
    }
    for (std::int64_t block = 0; block < blocks; ++block) {
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
        visit(pixel, block);
      }
    }
  }

  [[gnu::always_inline]] static void scatter_vector(const ScatterPixels& scatter,
                                                    std::int64_t pixel, std::int64_t block,
                                                    std::int64_t k) {
    const std::int64_t channel = block * pointwise_block + k;
    const std::int64_t at = block * scatter.to_block + pixel * scatter.to_pixel + k;
    Float y = V::load(scatter.from + pixel * scatter.from_pixel + channel, All{});
    if (scatter.bias != nullptr) {
      y = y + V::load(scatter.bias + channel, All{});
    }
    if (scatter.residual != nullptr) {
      y = y + V::load(static_cast<const T*>(scatter.residual) + at, All{});
    }
    if (scatter.relu) {
      y = V::max(V::zero(), y);
    }
    V::store(static_cast<T*>(scatter.to) + at, y, All{});
  }
};

}  // namespace cnn::layers::cpu
