#pragma once

#include "data/images/simd/pixel_loops.h"

namespace cnn::data::simd {

// Set is a type local to the file that instantiates this template: the linker would merge functions
// of the same name for two instruction sets.
template <class Set>
struct Loops {
  static void widen(const std::uint8_t* __restrict in, float* __restrict out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = in[i];
    }
  }

  static void gather(const float* __restrict row, const Taps& taps, float* __restrict out,
                     std::size_t n) {
    const std::int32_t* __restrict source = taps.source;
    const float* __restrict weight = taps.weight;
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = row[source[i]] * weight[i];
    }
    for (std::size_t t = 1; t < taps.count; ++t) {
      for (std::size_t i = 0; i < n; ++i) {
        out[i] += row[source[t * n + i]] * weight[t * n + i];
      }
    }
  }

  static void bilinear(const std::uint8_t* __restrict row, const std::int32_t* __restrict source,
                       const float* __restrict weight, float* __restrict out, std::size_t pixels) {
    for (std::size_t i = 0; i < pixels; ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        out[3 * i + c] =
            static_cast<float>(row[static_cast<std::size_t>(source[i]) + c]) * weight[i] +
            static_cast<float>(row[static_cast<std::size_t>(source[pixels + i]) + c]) *
                weight[pixels + i];
      }
    }
  }

  static void windows(const std::uint8_t* __restrict row, const WindowTaps& taps,
                      float* __restrict out) {
    constexpr std::size_t n = WindowTaps::group;
    for (std::size_t g = 0; g < taps.groups; ++g) {
      const std::uint8_t* const window = row + taps.window[g];
      const std::uint8_t* const index = taps.index + 2 * n * g;
      const float* const weight = taps.weight + 2 * n * g;
      for (std::size_t j = 0; j < n; ++j) {
        out[n * g + j] = static_cast<float>(window[index[j]]) * weight[j] +
                         static_cast<float>(window[index[n + j]]) * weight[n + j];
      }
    }
  }

  static void blend(const WeightedRows& rows, const Finish& finish, float* __restrict out,
                    std::size_t n) {
    const float* __restrict first = rows.rows[0];
    const float* __restrict shift = finish.shift;
    const float scale = finish.scale, weight = rows.weight[0];
    if (rows.count == 2) {
      const float* __restrict second = rows.rows[1];
      const float second_weight = rows.weight[1];
      for (std::size_t i = 0; i < n; ++i) {
        out[i] = (first[i] * weight + second[i] * second_weight) * scale + shift[i];
      }
      return;
    }
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = first[i] * weight;
    }
    for (std::size_t t = 1; t < rows.count; ++t) {
      const float* __restrict next = rows.rows[t];
      const float next_weight = rows.weight[t];
      for (std::size_t i = 0; i < n; ++i) {
        out[i] += next[i] * next_weight;
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = out[i] * scale + shift[i];
    }
  }

  static constexpr PixelLoops table{widen, gather, bilinear, windows, false, blend};
};

}  // namespace cnn::data::simd
