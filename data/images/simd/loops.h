#pragma once

#include "data/images/simd/pixel_loops.h"

namespace cnn::data::simd {

// Set is a type of the file that instantiates this: functions of the same name for two instruction
// sets would be merged by the linker.
template <class Set>
struct Loops {
  static void widen(const std::uint8_t* __restrict in, float* __restrict out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = in[i];
    }
  }

  static void gather(const float* __restrict row, const std::int32_t* __restrict source,
                     const float* __restrict weight, std::size_t taps, float* __restrict out,
                     std::size_t n) {
    if (taps == 2) {  // bilinear
      for (std::size_t i = 0; i < n; ++i) {
        out[i] = row[source[i]] * weight[i] + row[source[n + i]] * weight[n + i];
      }
      return;
    }
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = row[source[i]] * weight[i];
    }
    for (std::size_t t = 1; t < taps; ++t) {
      for (std::size_t i = 0; i < n; ++i) {
        out[i] += row[source[t * n + i]] * weight[t * n + i];
      }
    }
  }

  static void blend(const float* const* rows, const float* weight, std::size_t taps, float scale,
                    const float* __restrict shift, float* __restrict out, std::size_t n) {
    const float* __restrict first = rows[0];
    if (taps == 2) {
      const float* __restrict second = rows[1];
      for (std::size_t i = 0; i < n; ++i) {
        out[i] = (first[i] * weight[0] + second[i] * weight[1]) * scale + shift[i];
      }
      return;
    }
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = first[i] * weight[0];
    }
    for (std::size_t t = 1; t < taps; ++t) {
      const float* __restrict next = rows[t];
      for (std::size_t i = 0; i < n; ++i) {
        out[i] += next[i] * weight[t];
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = out[i] * scale + shift[i];
    }
  }

  static constexpr PixelLoops table{widen, gather, blend};
};

}  // namespace cnn::data::simd
