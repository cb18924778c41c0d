#pragma once

#include <cstddef>
#include <cstdint>

namespace cnn::data::simd {

// The inner loops of resizing, compiled for one instruction set each.
struct PixelLoops {
  // out[i] = in[i]
  void (*widen)(const std::uint8_t* in, float* out, std::size_t n);
  // out[i] = sum over t of row[source[t * n + i]] * weight[t * n + i]
  void (*gather)(const float* row, const std::int32_t* source, const float* weight,
                 std::size_t taps, float* out, std::size_t n);
  // out[i] = (sum over t of rows[t][i] * weight[t]) * scale + shift[i]
  void (*blend)(const float* const* rows, const float* weight, std::size_t taps, float scale,
                const float* shift, float* out, std::size_t n);
};

const PixelLoops& plain_pixel_loops();
const PixelLoops& avx2_pixel_loops();  // only where the processor has AVX2 and FMA

}  // namespace cnn::data::simd
