#pragma once

#include <cstdint>

#include "layers/cpu/simd/small_gemm.h"
#include "layers/cpu/simd/winograd.h"
#include "layers/cpu/simd/winograd_tiles.h"
#include "layers/cpu/simd/winograd_transforms.h"

// Winograd's algorithm over some tiles, see winograd.h, as templates of the vector type V, the
// element type T of the images and the form. All intermediate data lies in a scratch array for some
// tiles at a time: the transformed tiles, and their products.
namespace cnn::layers::cpu {

// Padding between the points of scratch arrays, in elements: at multiples of a page they would
// conflict in the cache.
inline constexpr std::int64_t winograd_gap = 16;

template <class V>
inline constexpr std::int64_t winograd_panel = 2 * V::width;

template <class V>
std::int64_t winograd_pitch(std::int64_t count, std::int64_t channels) {
  return count * channels + winograd_gap;
}

// Ranges of tiles, by number, and of channels.
struct TileSpan {
  std::int64_t first = 0, count = 0;
};
struct ChannelSpan {
  std::int64_t first = 0, count = 0;
};

// The place of each channel of a tile within a point of a scratch array.
template <class V>
struct TileOrder {
  std::int64_t tile = 0, block = 0;  // elements from one tile, and block of channels, to the next

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
#pragma GCC unroll 8
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
    const std::int64_t pitch = winograd_pitch<V>(tiles.count, channels.count);
    each(problem.tiles, tiles, channels.count,
         [&](const WinogradTile& tile, std::int64_t t, std::int64_t channel) {
           float* const to = v + order.place(t, channel);
           load<Transforms::points_h, Transforms::points_w>(
               x + place(image, tile.image, channels.first + channel), image,
               tile_h * tile.row - problem.tiles.pad_top,
               tile_w * tile.column - problem.tiles.pad_left, [&](const auto& pixel) {
                 Transforms::input(pixel, [&](int i, int j, Float value) {
                   V::store(to + (i * Transforms::points_w + j) * pitch, value, All{});
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
    const std::int64_t pitch = winograd_pitch<V>(tiles.count, channels.count);
    each(gradient.tiles, tiles, channels.count,
         [&](const WinogradTile& tile, std::int64_t t, std::int64_t channel) {
           float* const to = q + order.place(t, channel);
           load<tile_h, tile_w>(
               dy + place(image, tile.image, channels.first + channel), image, tile_h * tile.row,
               tile_w * tile.column, [&](const auto& pixel) {
                 Transforms::output_gradient(pixel, [&](int i, int j, Float value) {
                   V::store(to + (i * Transforms::points_w + j) * pitch, value, All{});
                 });
                 if (gradient.bias != nullptr) {
                   V::store(to + points * pitch, sum_of(pixel), All{});
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
    return points * (winograd_pitch<V>(count, in) + winograd_pitch<V>(count, winograd_panel<V>));
  }
  static std::int64_t gradient_scratch(std::int64_t outs, std::int64_t count) {
    return points * winograd_pitch<V>(count, winograd_block) +
           (points + 1) * winograd_pitch<V>(count, outs);
  }

  static void convolve(const WinogradConv& conv, std::int64_t first_tile, std::int64_t count,
                       float* scratch) {
    const std::int64_t in = conv.x_image.channels;
    float* const v = scratch;
    float* const m = scratch + points * winograd_pitch<V>(count, in);
    const TileSpan tiles{first_tile, count};
    Images::tiles_in(conv, tiles, {0, in}, {.tile = in, .block = winograd_block}, v);
    for (std::int64_t first = conv.first_out; first < conv.last_out; first += winograd_panel<V>) {
      const std::int64_t left = conv.last_out - first;
      const std::int64_t width = left < winograd_panel<V> ? left : winograd_panel<V>;
      const float* const u = conv.u + first * points * in;
      for (std::int64_t p = 0; p < points; ++p) {
        SmallGemm<V>::multiply({.a = v + p * winograd_pitch<V>(count, in),
                                .b = u + p * in * width,
                                .c = m + p * winograd_pitch<V>(count, width),
                                .rows = count,
                                .depth = in,
                                .columns = width,
                                .a_row = in,
                                .a_step = 1,
                                .b_step = width,
                                .b_vector = V::width,
                                .c_row = width,
                                .c_vector = V::width,
                                .next_b = u + (p + 1) * in * width});
      }
      Images::tiles_out(conv, tiles, {first, width}, m);
    }
  }

  // Transforms and multiplies one block of input channels after another, whose tiles stay in a
  // second-level cache, while the tiles of dy are read in order and so can be prefetched. Blocks of
  // channels lie apart: as channels of a whole slab, tiles would lie so far from each other that
  // those of one product compete for the same sets of the first-level cache.
  static void gradient(const WinogradGradient& gradient, std::int64_t first_tile,
                       std::int64_t count, float* scratch) {
    const std::int64_t outs = gradient.outs, pitch_v = winograd_pitch<V>(count, winograd_block),
                       pitch_q = winograd_pitch<V>(count, outs);
    float* const v = scratch;
    float* const q = scratch + points * pitch_v;
    const TileSpan tiles{first_tile, count};
    const TileOrder<V> order{.tile = winograd_block, .block = count * winograd_block};
    Images::gradients_in(gradient, tiles, {gradient.first_out, outs}, order, q);
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
  static constexpr bool two_blocks = V::width == winograd_block;  // of output channels in a panel

  // A point and the first channels of its sums, within the slab.
  struct Sums {
    std::int64_t p, in, out;
  };

  // Adds the products of one block of input channels and one panel of output channels.
  static void multiply_blocks(const WinogradGradient& gradient, std::int64_t count, const Sums& to,
                              const float* x, const float* dy) {
    constexpr std::int64_t square = winograd_block * winograd_block;
    const std::int64_t left = gradient.outs - to.out;
    const std::int64_t place =
        to.p * gradient.ins * gradient.outs + to.in * gradient.outs + to.out * winograd_block;
    SmallGemm<V>::multiply_block({.a = x,
                                  .b = dy,
                                  .c = gradient.sums + place,
                                  .rows = winograd_block,
                                  .depth = count,
                                  .columns = left < winograd_panel<V> ? left : winograd_panel<V>,
                                  .a_row = 1,
                                  .a_step = winograd_block,
                                  .b_step = winograd_block,
                                  .b_vector = two_blocks ? count * winograd_block : V::width,
                                  .c_row = winograd_block,
                                  .c_vector = two_blocks ? square : V::width,
                                  .add = true,
                                  .prefetch = dy + count * winograd_panel<V>});
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

template <class V, WinogradForm form>
struct WinogradWeightLoops {
  using Float = typename V::Float;
  using All = typename V::All;
  using Transforms = WinogradTransforms<V, form>;
  static constexpr std::int64_t points = form.points(), tap_count = form.taps();
  static constexpr std::int64_t block = winograd_block, taps_of_block = block * tap_count;

  // Transforms input channels [first, last) in blocks of 16 x 16 channels, which are transposed so
  // that output channels are contiguous.
  static void weights(const WinogradWeights& weights, std::int64_t first, std::int64_t last,
                      float* u) {
    const std::int64_t ins = weights.rotated ? weights.out : weights.in,
                       outs = weights.rotated ? weights.in : weights.out;
    float turned[taps_of_block * block];
    for (std::int64_t in = first; in < last; in += block) {
      for (std::int64_t out = 0; out < outs; out += block) {
        turn(weights, in, out, turned);
        for (std::int64_t c = 0; c < block; ++c) {
          for (std::int64_t k = 0; k < block; k += V::width) {
            const std::int64_t panel = out / winograd_panel<V> * winograd_panel<V>;
            const std::int64_t width = least(winograd_panel<V>, outs - panel);
            transform(turned + c * taps_of_block + k, weights.rotated, ins * width,
                      u + panel * points * ins + (in + c) * width + out + k - panel);
          }
        }
      }
    }
  }

  static void taps(const float* sums, std::int64_t ins, std::int64_t outs, float* taps) {
    const std::int64_t plane = ins * outs;
    for (std::int64_t i = 0; i < plane; i += V::width) {
      Transforms::weights_gradient(
          [&](int p, int q) {
            return V::load(sums + (p * Transforms::points_w + q) * plane + i, All{});
          },
          [&](int r, int s, Float value) {
            V::store(taps + (r * Transforms::taps_w + s) * plane + i, value, All{});
          });
    }
  }

  static void join(const WinogradTaps& winograd_taps, std::int64_t first_out, float* dw) {
    const std::int64_t part = tap_count * winograd_taps.in * winograd_taps.out;
    const std::int64_t slab = first_out / winograd_taps.slab_out;
    const std::int64_t outs =
        least(winograd_taps.slab_out, winograd_taps.out - slab * winograd_taps.slab_out);
    for (std::int64_t in = 0; in < winograd_taps.in; ++in) {
      const std::int64_t ins_before = in / winograd_taps.slab_in * winograd_taps.slab_in;
      const std::int64_t ins = least(winograd_taps.slab_in, winograd_taps.in - ins_before);
      const float* const taps =
          winograd_taps.taps +
          tap_count * (ins_before * winograd_taps.out + slab * winograd_taps.slab_out * ins);
      for (std::int64_t tap = 0; tap < tap_count; ++tap) {
        const float* const row =
            taps + tap * ins * outs + (in - ins_before) / block * block * outs +
            (first_out - slab * winograd_taps.slab_out) * block + (in - ins_before) % block * block;
        float sums[block];
        for (std::int64_t k = 0; k < block; k += V::width) {
          Float sum = V::load(row + k, All{});
          for (std::int64_t i = 1; i < winograd_taps.parts; ++i) {
            sum = sum + V::load(row + i * part + k, All{});
          }
          V::store(sums + k, sum, All{});
        }
        for (std::int64_t k = 0; k < block; ++k) {
          dw[((first_out + k) * winograd_taps.in + in) * tap_count + tap] = sums[k];
        }
      }
    }
  }

 private:
  static std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

  // turned: [taps][block] of one input channel; points of u are `pitch` apart.
  static void transform(const float* turned, bool rotated, std::int64_t pitch, float* u) {
    const std::int64_t first = rotated ? (tap_count - 1) * block : 0,
                       step = rotated ? -block : block;
    Transforms::weights(
        [&](int r, int s) {
          return V::load(turned + first + (r * Transforms::taps_w + s) * step, All{});
        },
        [&](int p, int q, Float value) {
          V::store(u + (p * Transforms::points_w + q) * pitch, value, All{});
        });
  }

  // Writes turned[in][tap][out] of 16 x 16 channels.
  static void turn(const WinogradWeights& weights, std::int64_t in, std::int64_t out,
                   float* turned) {
    if (weights.rotated) {
      for (std::int64_t c = 0; c < block; ++c) {
        const float* const w = weights.w + ((in + c) * weights.in + out) * tap_count;
        for (std::int64_t k = 0; k < block; ++k) {
          for (std::int64_t tap = 0; tap < tap_count; ++tap) {
            turned[(c * tap_count + tap) * block + k] = w[k * tap_count + tap];
          }
        }
      }
      return;
    }
    for (std::int64_t k = 0; k < block; ++k) {
      const float* const w = weights.w + ((out + k) * weights.in + in) * tap_count;
      for (std::int64_t i = 0; i < taps_of_block; ++i) {
        turned[i * block + k] = w[i];
      }
    }
  }
};

// Returns every loop compiled for the vectors V and that form.
template <class V, WinogradForm form>
constexpr WinogradLoops make_winograd() {
  using F32 = WinogradLoopsOver<V, float, form>;
  using Bf16 = WinogradLoopsOver<V, std::uint16_t, form>;
  using Weights = WinogradWeightLoops<V, form>;
  return {.form = form,
          .panel = winograd_panel<V>,
          .f32 = {.convolve = F32::convolve, .gradient = F32::gradient},
          .bf16 = {.convolve = Bf16::convolve, .gradient = Bf16::gradient},
          .conv_scratch = F32::conv_scratch,
          .gradient_scratch = F32::gradient_scratch,
          .weights = Weights::weights,
          .taps = Weights::taps,
          .join = Weights::join};
}

}  // namespace cnn::layers::cpu
