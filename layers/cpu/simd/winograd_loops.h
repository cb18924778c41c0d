#pragma once

#include <cstdint>

#include "layers/cpu/simd/small_gemm.h"
#include "layers/cpu/simd/winograd.h"
#include "layers/cpu/simd/winograd_tiles.h"
#include "layers/cpu/simd/winograd_transforms.h"
#include "layers/cpu/simd/winograd_weight_loops.h"

// Winograd's algorithm over some tiles, see winograd.h, as templates of the vector type V, the
// element type T of the images and the form. All intermediate data lies in a scratch array for some
// tiles at a time: the transformed tiles, and their products.
namespace cnn::layers::cpu {

// The place of each channel of a tile within a point of a scratch array.
template <class V>
struct TileOrder {
  // Elements from one point, tile and block of channels to the next.
  std::int64_t point = 0, tile = 0, block = 0;

  std::int64_t place(std::int64_t t, std::int64_t channel) const {
    return t * tile + channel / winograd_block * block + channel % winograd_block;
  }
};

// Loads and stores image elements of type T.
template <class V, class T, WinogradForm form>
struct WinogradImages {
  using Float = typename V::Float;
  using All = typename V::All;
  using Transforms = WinogradTransforms<V, form>;
  static constexpr int tile_h = Transforms::tile_h, tile_w = Transforms::tile_w;
  static constexpr int points = static_cast<int>(form.points());

  // Calls with(load), where load(i, j) is pixel (i, j) of the high x wide pixels from (row,
  // column), zero for pixels outside the image. Prefetches the pixels of a later tile, since those
  // of a block of channels lie too far apart for the processor to foresee them.
  template <int high, int wide, class With>
  [[gnu::always_inline]] static void load(const T* x, const WinogradImage& image, std::int64_t row,
                                          std::int64_t column, const With& with) {
    constexpr int ahead = 2;
    const std::int64_t line = image.width * image.pixel;
    const T* const corner = x + row * line + column * image.pixel;
    const T* later = corner + (wide + (ahead - 1) * tile_w) * image.pixel;
#pragma GCC unroll 1
    for (int j = 0; j < tile_w; ++j, later += image.pixel) {
#pragma GCC unroll 10
      for (int i = 0; i < high; ++i) {
        __builtin_prefetch(later + i * line);
      }
    }
    const auto pixel = [&](int i, int j) __attribute__((always_inline)) {
      return V::load(corner + i * line + j * image.pixel, All{});
    };
    if (row >= 0 && column >= 0 && row + high <= image.height && column + wide <= image.width) {
      with(pixel);
      return;
    }
    const auto inside = [](std::int64_t at, std::int64_t size) __attribute__((always_inline)) {
      return static_cast<std::uint64_t>(at) < static_cast<std::uint64_t>(size);
    };
    with([&](int i, int j) __attribute__((always_inline)) {
      return inside(row + i, image.height) && inside(column + j, image.width) ? pixel(i, j)
                                                                              : V::zero();
    });
  }

  // Calls visit(tile, index in the span, channel) for each tile and vector of channels, block by
  // block of channels.
  template <class Visit>
  [[gnu::always_inline]] static void each(const WinogradTiles& cover, const TileSpan& tiles,
                                          std::int64_t channels, const Visit& visit) {
    for (std::int64_t block = 0; block < channels; block += winograd_block) {
      TileWalk<V> walk(cover, tiles.first);
      for (std::int64_t t = 0; t < tiles.count; ++t, walk.next()) {
        for (std::int64_t i = 0; i < winograd_block; i += V::width) {
          visit(walk.at(), t, block + i);
        }
      }
    }
  }

  // Returns the index of the first element of a vector of channels of an image.
  [[gnu::always_inline]] static std::int64_t place(const WinogradImage& image, std::int64_t number,
                                                   std::int64_t channel) {
    return number * image.image + channel / winograd_block * image.block + channel % winograd_block;
  }

  // Computes the transformed tiles of x, whose vectors of channels lie in v as `order` says.
  template <class Of>  // WinogradConv or WinogradGradient
  static void tiles_in(const Of& problem, const TileSpan& tiles, const ChannelSpan& channels,
                       const TileOrder<V>& order, float* v) {
    const WinogradImage& image = problem.x_image;
    const T* const x = static_cast<const T*>(problem.x);
    each(problem.tiles, tiles, channels.count,
         [&](const WinogradTile& tile, std::int64_t t, std::int64_t channel) {
           float* const to = v + order.place(t, channel);
           load<Transforms::points_h, Transforms::points_w>(
               x + place(image, tile.image, channels.first + channel), image,
               tile_h * tile.row - problem.tiles.pad_top,
               tile_w * tile.column - problem.tiles.pad_left, [&](const auto& pixel) {
                 Transforms::input(pixel, [&](int i, int j, Float value) {
                   V::store(to + (i * Transforms::points_w + j) * order.point, value, All{});
                 });
               });
         });
  }

  // Computes the transformed tiles of dy likewise. For a bias gradient, the sums of the tiles
  // follow as one more point.
  static void gradients_in(const WinogradGradient& gradient, const TileSpan& tiles,
                           const ChannelSpan& channels, const TileOrder<V>& order, float* q) {
    const WinogradImage& image = gradient.y_image;
    const T* const dy = static_cast<const T*>(gradient.dy);
    each(gradient.tiles, tiles, channels.count,
         [&](const WinogradTile& tile, std::int64_t t, std::int64_t channel) {
           float* const to = q + order.place(t, channel);
           load<tile_h, tile_w>(
               dy + place(image, tile.image, channels.first + channel), image, tile_h * tile.row,
               tile_w * tile.column, [&](const auto& pixel) {
                 Transforms::output_gradient(pixel, [&](int i, int j, Float value) {
                   V::store(to + (i * Transforms::points_w + j) * order.point, value, All{});
                 });
                 if (gradient.bias != nullptr) {
                   V::store(to + points * order.point, sum_of(pixel), All{});
                 }
               });
         });
  }

  // Computes the outputs of some channels from their products m[points][tiles][channels].
  static void tiles_out(const WinogradConv& conv, const TileSpan& tiles,
                        const ChannelSpan& channels, const float* m) {
    const std::int64_t pitch = winograd_pitch<V>(tiles.count, channels.count);
    const WinogradImage& image = conv.y_image;
    each(conv.tiles, tiles, channels.count,
         [&](const WinogradTile& tile, std::int64_t t, std::int64_t channel) {
           Float y[tile_h * tile_w];
           const float* const from = m + t * channels.count + channel;
           Transforms::output(
               [&](int i, int j) {
                 return V::load(from + (i * Transforms::points_w + j) * pitch, All{});
               },
               [&](int i, int j, Float value) { y[i * tile_w + j] = value; });
           if (conv.bias != nullptr) {
             const Float bias = V::load(conv.bias + channels.first + channel, All{});
             for (Float& each_y : y) {
               each_y = each_y + bias;
             }
           }
           const std::int64_t row = tile_h * tile.row, column = tile_w * tile.column;
           const std::int64_t at = place(image, tile.image, channels.first + channel) +
                                   (row * image.width + column) * image.pixel;
           const std::int64_t rows = least(tile_h, image.height - row);
           const std::int64_t columns = least(tile_w, image.width - column);
           for (std::int64_t i = 0; i < rows; ++i) {
             for (std::int64_t j = 0; j < columns; ++j) {
               finish(conv, at + (i * image.width + j) * image.pixel, y[tile_w * i + j]);
             }
           }
         });
  }

 private:
  template <class Pixel>
  [[gnu::always_inline]] static Float sum_of(const Pixel& pixel) {
    Float sum = V::zero();
    for (int i = 0; i < tile_h; ++i) {
      for (int j = 0; j < tile_w; ++j) {
        sum = sum + pixel(i, j);
      }
    }
    return sum;
  }

  static std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

  [[gnu::always_inline]] static void finish(const WinogradConv& conv, std::int64_t at, Float y) {
    if (conv.residual != nullptr) {
      y = y + V::load(static_cast<const T*>(conv.residual) + at, All{});
    }
    if (conv.relu) {
      y = V::max(V::zero(), y);  // NaN stays
    }
    V::store(static_cast<T*>(conv.y) + at, y, All{});
  }
};

template <class V, class T, WinogradForm form>
struct WinogradLoopsOver {
  using Images = WinogradImages<V, T, form>;
  static constexpr std::int64_t points = Images::points;

  static std::int64_t conv_scratch(std::int64_t in, std::int64_t count) {
    return tiles_size(in, count) + products_size(count);
  }
  static std::int64_t multiply_scratch(std::int64_t count) {
    return products_size(count) + points * winograd_pitch<V>(ins_together, winograd_panel<V>);
  }
  static std::int64_t gradient_scratch(std::int64_t outs, std::int64_t count) {
    return points * winograd_pitch<V>(count, winograd_block) +
           (points + 1) * winograd_pitch<V>(count, outs);
  }
  static std::int64_t tiles_size(std::int64_t in, std::int64_t count) {
    return points * winograd_pitch<V>(count, in);
  }

  static void convolve(const WinogradConv& conv, const TileSpan& tiles, float* scratch) {
    const std::int64_t in = conv.x_image.channels;
    float* const v = scratch;
    float* const m = scratch + tiles_size(in, tiles.count);
    transform(conv, tiles, {0, in}, v);
    each_panel(conv, [&](const ChannelSpan& outs) {
      const std::int64_t before = outs.first % winograd_panel<V>, panel = outs.first - before;
      const std::int64_t width = least(winograd_panel<V>, conv.y_image.channels - panel);
      multiply_panel({.v = v,
                      .v_pitch = winograd_pitch<V>(tiles.count, in),
                      .in = in,
                      .ins = in,
                      .u = conv.u + panel * points * in + before,
                      .u_pitch = in * width,
                      .u_row = width},
                     tiles.count, outs.count, m);
      Images::tiles_out(conv, tiles, outs, m);
    });
  }

  static void transform(const WinogradConv& conv, const TileSpan& tiles, const ChannelSpan& ins,
                        float* v) {
    const std::int64_t in = conv.x_image.channels;
    Images::tiles_in(
        conv, tiles, ins,
        {.point = winograd_pitch<V>(tiles.count, in), .tile = in, .block = winograd_block},
        v + ins.first);
  }

  static void multiply(const WinogradConv& conv, const TileSpan& tiles, const float* v,
                       float* scratch) {
    float* const m = scratch;
    float* const u = scratch + products_size(tiles.count);
    each_panel(conv, [&](const ChannelSpan& outs) {
      transform_and_multiply_panel(conv, outs, tiles.count, {.v = v, .u = u, .m = m});
      Images::tiles_out(conv, tiles, outs, m);
    });
  }

  // Transforms and multiplies one block of input channels after another, whose tiles stay in a
  // second-level cache, while the tiles of dy are read in order and so can be prefetched. Blocks of
  // channels lie apart: as channels of a whole slab, tiles would lie so far from each other that
  // those of one product compete for the same sets of the first-level cache.
  static void gradient(const WinogradGradient& gradient, const TileSpan& tiles, float* scratch) {
    const std::int64_t count = tiles.count, outs = gradient.outs,
                       pitch_v = winograd_pitch<V>(count, winograd_block),
                       pitch_q = winograd_pitch<V>(count, outs);
    float* const v = scratch;
    float* const q = scratch + points * pitch_v;
    TileOrder<V> order{.point = pitch_q, .tile = winograd_block, .block = count * winograd_block};
    Images::gradients_in(gradient, tiles, {gradient.first_out, outs}, order, q);
    order.point = pitch_v;
    for (std::int64_t in = 0; in < gradient.ins; in += winograd_block) {
      Images::tiles_in(gradient, tiles, {gradient.first_in + in, winograd_block}, order, v);
      for (std::int64_t p = 0; p < points; ++p) {
        for (std::int64_t out = 0; out < outs; out += winograd_panel<V>) {
          multiply_blocks(gradient, count, {.p = p, .in = in, .out = out}, v + p * pitch_v,
                          q + p * pitch_q + out * count);
        }
      }
    }
    if (gradient.bias != nullptr) {
      add_bias(q + points * pitch_q, count, outs, gradient.bias);
    }
  }

 private:
  static constexpr bool whole_blocks = V::width == winograd_block;  // in each vector of a panel

  // Input channels whose weights are transformed together: with those of a panel, they take 1.1 MiB
  // in F(4x4, 3x3) with AVX-512, a quarter of it with AVX2.
  static constexpr std::int64_t ins_together = 128;

  // Transformed tiles and weights of `ins` of `in` input channels; points are a pitch apart.
  struct Points {
    const float* v;
    std::int64_t v_pitch, in, ins;
    const float* u;
    std::int64_t u_pitch, u_row;  // u_row: from one input channel to the next
    bool add = false;
  };

  static std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

  static std::int64_t products_size(std::int64_t count) {
    return points * winograd_pitch<V>(count, winograd_panel<V>);
  }

  // Calls visit(outs) for each panel of the output channels to compute, or for the part of it that
  // is to be computed.
  template <class Visit>
  static void each_panel(const WinogradConv& conv, const Visit& visit) {
    for (std::int64_t first = conv.first_out; first < conv.last_out;) {
      const std::int64_t panel_end = (first / winograd_panel<V> + 1) * winograd_panel<V>;
      const std::int64_t end = least(panel_end, conv.last_out);
      visit(ChannelSpan{first, end - first});
      first = end;
    }
  }

  // m[points][count][width] (+)= v u.
  static void multiply_panel(const Points& operands, std::int64_t count, std::int64_t width,
                             float* m) {
    for (std::int64_t p = 0; p < points; ++p) {
      const float* const u = operands.u + p * operands.u_pitch;
      SmallGemm<V>::multiply({.a = operands.v + p * operands.v_pitch,
                              .b = u,
                              .c = m + p * winograd_pitch<V>(count, width),
                              .rows = count,
                              .depth = operands.ins,
                              .columns = width,
                              .a_row = operands.in,
                              .a_step = 1,
                              .b_step = operands.u_row,
                              .b_vector = V::width,
                              .c_row = width,
                              .c_vector = V::width,
                              .add = operands.add,
                              .next_b = u + operands.u_pitch});
    }
  }

  // Transformed tiles, weights of some input channels and one panel, and their products.
  struct PanelArrays {
    const float* v;
    float *u, *m;
  };

  // The sums are the same as those of one multiply_panel(): they go on from m in the same order.
  static void transform_and_multiply_panel(const WinogradConv& conv, const ChannelSpan& outs,
                                           std::int64_t count, const PanelArrays& arrays) {
    const std::int64_t in = conv.x_image.channels;
    const std::int64_t pitch = winograd_pitch<V>(ins_together, outs.count);
    for (std::int64_t first = 0; first < in; first += ins_together) {
      const std::int64_t ins = least(ins_together, in - first);
      WinogradWeightLoops<V, form>::panel(conv.weights, {first, ins}, outs, pitch, arrays.u);
      multiply_panel({.v = arrays.v + first,
                      .v_pitch = winograd_pitch<V>(count, in),
                      .in = in,
                      .ins = ins,
                      .u = arrays.u,
                      .u_pitch = pitch,
                      .u_row = outs.count,
                      .add = first > 0},
                     count, outs.count, arrays.m);
    }
  }

  // A point and the first channels of its sums, within the slab.
  struct Sums {
    std::int64_t p, in, out;
  };

  // Adds the products of one block of input channels and one panel of output channels.
  static void multiply_blocks(const WinogradGradient& gradient, std::int64_t count, const Sums& to,
                              const float* x, const float* dy) {
    constexpr std::int64_t square = winograd_block * winograd_block;
    const std::int64_t columns = least(winograd_panel<V>, gradient.outs - to.out);
    const std::int64_t place =
        to.p * gradient.ins * gradient.outs + to.in * gradient.outs + to.out * winograd_block;
    float* const sums = gradient.sums + place;
    // With AVX-512 a panel is a whole slab, and the next product adds to the sums of another point.
    const float* const next =
        whole_blocks ? sums + gradient.ins * gradient.outs : dy + count * winograd_panel<V>;
    SmallGemm<V>::multiply_block({.a = x,
                                  .b = dy,
                                  .c = sums,
                                  .rows = winograd_block,
                                  .depth = count,
                                  .columns = columns,
                                  .a_row = 1,
                                  .a_step = winograd_block,
                                  .b_step = winograd_block,
                                  .b_vector = whole_blocks ? count * winograd_block : V::width,
                                  .c_row = winograd_block,
                                  .c_vector = whole_blocks ? square : V::width,
                                  .add = true,
                                  .prefetch = next});
  }

  // sums: of the tiles, [outs/16][tiles][16].
  static void add_bias(const float* sums, std::int64_t count, std::int64_t outs, double* bias) {
    for (std::int64_t out = 0; out < outs; out += winograd_block) {
      for (std::int64_t t = 0; t < count; ++t) {
        for (std::int64_t k = 0; k < winograd_block; ++k) {
          bias[out + k] += static_cast<double>(*sums++);
        }
      }
    }
  }
};

template <class L>
constexpr WinogradTypedLoops typed_winograd() {
  return {.convolve = L::convolve,
          .transform = L::transform,
          .multiply = L::multiply,
          .gradient = L::gradient};
}

// Returns every loop compiled for the vectors V and that form.
template <class V, WinogradForm form>
constexpr WinogradLoops make_winograd() {
  using F32 = WinogradLoopsOver<V, float, form>;
  using Bf16 = WinogradLoopsOver<V, std::uint16_t, form>;
  using Weights = WinogradWeightLoops<V, form>;
  return {.form = form,
          .panel = winograd_panel<V>,
          .min_outs = 2 * V::width,
          .f32 = typed_winograd<F32>(),
          .bf16 = typed_winograd<Bf16>(),
          .conv_scratch = F32::conv_scratch,
          .tiles_size = F32::tiles_size,
          .multiply_scratch = F32::multiply_scratch,
          .gradient_scratch = F32::gradient_scratch,
          .weights = Weights::weights,
          .taps = Weights::taps,
          .join = Weights::join};
}

}  // namespace cnn::layers::cpu
