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
  static void run(const PointwiseProduct& product) {
    const std::int64_t parts = (product.ins + max_depth - 1) / max_depth;
    for (std::int64_t out = 0; out < product.outs; out += panel) {
      const bool wide = product.outs - out >= panel;
      for (std::int64_t i = 0; i < parts; ++i) {
        const std::int64_t first = product.ins * i / parts;
        multiply({.x = product.x + first,
                  .w = product.w + out * product.ins + first * pointwise_block,
                  .y = product.y + out,
                  .depth = product.ins * (i + 1) / parts - first,
                  .x_pixel = product.x_pixel,
                  .y_pixel = product.y_pixel,
                  .w_vector = V::width == pointwise_block ? product.ins * V::width : V::width,
                  .add = i > 0},
                 product.pixels, wide ? wide_kernels : narrow_kernels);
      }
    }
  }

 private:
  using Float = typename V::Float;
  using All = typename V::All;

  // Two vectors of output channels of at most max_pixels pixels.
  struct Tile {
    const float *x, *w;
    float* y;
    std::int64_t depth, x_pixel, y_pixel;
    std::int64_t w_vector;  // elements from the first vector of w to the second
    bool add;
  };
  using Kernel = void (*)(const Tile&);

  // Two sums a pixel, a vector of w for each, and one element of x: within 32 or 16 registers.
  static constexpr std::int64_t max_pixels = V::width == 16 ? 12 : 6;
  static constexpr std::int64_t panel = 2 * V::width;
  // The part of w that all pixels of a call multiply takes half of a first-level cache.
  static constexpr std::int64_t max_depth = 256;

  template <std::size_t count>
  static void multiply(Tile tile, std::int64_t pixels, const std::array<Kernel, count>& kernels) {
    const Tile all = tile;
    const std::int64_t groups = (pixels + max_pixels - 1) / max_pixels;
    for (std::int64_t i = 0; i < groups; ++i) {
      const std::int64_t first = pixels * i / groups;
      tile.x = all.x + first * all.x_pixel;
      tile.y = all.y + first * all.y_pixel;
      kernels[static_cast<std::size_t>(pixels * (i + 1) / groups - first - 1)](tile);
    }
  }

  // The next panel of y is prefetched: it is often not in any cache, and its lines are far apart.
  template <int pixels, int vectors>
  static void kernel(const Tile& tile) {
    constexpr int unrolled = 4;
    const std::int64_t x_pixel = tile.x_pixel, y_pixel = tile.y_pixel;
    Float sums[pixels * vectors];
#pragma GCC unroll 12
    for (int p = 0; p < pixels; ++p) {
      __builtin_prefetch(tile.y + p * y_pixel + vectors * V::width, 1);
    }
    if (tile.add) {
#pragma GCC unroll 24
      for (int i = 0; i < pixels * vectors; ++i) {
        sums[i] = V::load(tile.y + i / vectors * y_pixel + i % vectors * V::width, All{});
      }
    } else {
#pragma GCC unroll 24
      for (int i = 0; i < pixels * vectors; ++i) {
        sums[i] = V::zero();
      }
    }
    // A pointer for each three pixels: an address has one register times 1 or 2 beside its base.
    const float* x[(pixels + 2) / 3];
#pragma GCC unroll 4
    for (int i = 0; i < (pixels + 2) / 3; ++i) {
      x[i] = tile.x + x_pixel * 3 * i;
    }
    const float* w = tile.w;
    const auto advance = [&](std::int64_t channels) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int i = 0; i < (pixels + 2) / 3; ++i) {
        x[i] += channels;
      }
      w += channels * pointwise_block;
    };
    const std::int64_t w_vector = V::width == pointwise_block ? tile.w_vector : V::width;
    const auto step = [&](int channel) __attribute__((always_inline)) {
      Float factors[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        factors[v] = V::load(w + channel * pointwise_block + v * w_vector, All{});
      }
#pragma GCC unroll 12
      for (int p = 0; p < pixels; ++p) {
        const Float element = V::set(x[p / 3][p % 3 * x_pixel + channel]);
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
          sums[p * vectors + v] = V::fma(element, factors[v], sums[p * vectors + v]);
        }
      }
    };
    std::int64_t left = tile.depth;
    for (; left >= unrolled; left -= unrolled) {
#pragma GCC unroll 4
      for (int channel = 0; channel < unrolled; ++channel) {
        step(channel);
      }
      advance(unrolled);
    }
    for (; left > 0; --left) {
      step(0);
      advance(1);
    }
#pragma GCC unroll 24
    for (int i = 0; i < pixels * vectors; ++i) {
      V::store(tile.y + i / vectors * y_pixel + i % vectors * V::width, sums[i], All{});
    }
  }

  template <int vectors, int... less>
  static constexpr auto kernels_for(std::integer_sequence<int, less...> /*pixels*/) {
    return std::array<Kernel, sizeof...(less)>{kernel<less + 1, vectors>...};
  }
  using Pixels = std::make_integer_sequence<int, static_cast<int>(max_pixels)>;
  static constexpr auto wide_kernels = kernels_for<2>(Pixels{}),
                        narrow_kernels = kernels_for<1>(Pixels{});
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
