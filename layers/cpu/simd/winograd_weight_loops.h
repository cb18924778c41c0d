#pragma once

#include <cstdint>

#include "layers/cpu/simd/small_gemm.h"
#include "layers/cpu/simd/winograd.h"
#include "layers/cpu/simd/winograd_transforms.h"

// The transforms of weights and of their gradients in Winograd's algorithm, see winograd.h, and the
// order of the arrays of points. Templates of the vector type V.
namespace cnn::layers::cpu {

// Padding between the points of scratch arrays, in elements: at multiples of a page they would
// conflict in the cache.
inline constexpr std::int64_t winograd_gap = 16;

template <class V>
inline constexpr std::int64_t winograd_panel = V::width* SmallGemm<V>::max_vectors;

template <class V>
std::int64_t winograd_pitch(std::int64_t count, std::int64_t channels) {
  return count * channels + winograd_gap;
}

template <class V, WinogradForm form>
struct WinogradWeightLoops {
  using Float = typename V::Float;
  using All = typename V::All;
  using Transforms = WinogradTransforms<V, form>;
  static constexpr std::int64_t points = form.points(), tap_count = form.taps();
  static constexpr std::int64_t block = winograd_block, taps_of_block = block * tap_count;

  // Transforms the pieces [first, last) of all weights.
  static void weights(const WinogradWeights& weights, std::int64_t first, std::int64_t last,
                      float* u) {
    const std::int64_t ins = weights.conv_ins(), outs = weights.conv_outs();
    const std::int64_t pieces = ins / block;  // of a panel
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t in = i % pieces * block, out = i / pieces * winograd_panel<V>;
      const std::int64_t width = least(winograd_panel<V>, outs - out);
      panel(weights, {in, block}, {out, width}, ins * width, u + out * points * ins + in * width);
    }
  }

  // Transforms the weights of some input channels, a multiple of 16, and of one panel of output
  // channels into u[points][ins][outs], whose points are `pitch` apart, in blocks of 16 x 16
  // channels, which are transposed so that output channels are contiguous.
  static void panel(const WinogradWeights& weights, const ChannelSpan& ins, const ChannelSpan& outs,
                    std::int64_t pitch, float* u) {
    float turned[taps_of_block * block];
    for (std::int64_t in = 0; in < ins.count; in += block) {
      for (std::int64_t out = 0; out < outs.count; out += block) {
        turn(weights, ins.first + in, outs.first + out, turned);
        for (std::int64_t c = 0; c < block; ++c) {
          for (std::int64_t k = 0; k < block; k += V::width) {
            transform(turned + c * taps_of_block + k, weights.rotated, pitch,
                      u + (in + c) * outs.count + out + k);
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

  // Writes turned[in][tap][out] of 16 x 16 channels, and prefetches the weights of the next 16
  // input channels, which begin 16 rows further on if rotated.
  static void turn(const WinogradWeights& weights, std::int64_t in, std::int64_t out,
                   float* turned) {
    const std::int64_t row = weights.in * tap_count;
    if (weights.rotated) {
      const float* const w = weights.w + in * row + out * tap_count;
      for (std::int64_t c = 0; c < block; ++c) {
        prefetch_row(w + (block + c) * row);
        for (std::int64_t k = 0; k < block; ++k) {
          for (std::int64_t tap = 0; tap < tap_count; ++tap) {
            turned[(c * tap_count + tap) * block + k] = w[c * row + k * tap_count + tap];
          }
        }
      }
      return;
    }
    const float* const w = weights.w + out * row + in * tap_count;
    for (std::int64_t k = 0; k < block; ++k) {
      prefetch_row(w + k * row + taps_of_block);
      for (std::int64_t i = 0; i < taps_of_block; ++i) {
        turned[i * block + k] = w[k * row + i];
      }
    }
  }

  static void prefetch_row(const float* row) {
    for (std::int64_t i = 0; i < taps_of_block; i += 16) {
      __builtin_prefetch(row + i);
    }
  }
};

}  // namespace cnn::layers::cpu
