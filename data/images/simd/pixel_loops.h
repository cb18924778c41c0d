#pragma once

#include <cstddef>
#include <cstdint>

namespace cnn::data::simd {

// The sources and weights of the values of an output row.
struct Taps {
  const std::int32_t* source = nullptr;
  const float* weight = nullptr;
  std::size_t count = 0;
};
struct WeightedRows {
  const float* const* rows = nullptr;
  const float* weight = nullptr;
  std::size_t count = 0;
};
// The final scale and shift of every value.
struct Finish {
  float scale = 1;
  const float* shift = nullptr;
};

// The inner loops of resizing, one table per instruction set.
struct PixelLoops {
  // out[i] = in[i]
  void (*widen)(const std::uint8_t* in, float* out, std::size_t n);
  // out[i] = sum over t of row[source[t * n + i]] * weight[t * n + i]
  void (*gather)(const float* row, const Taps& taps, float* out, std::size_t n);
  // Resizes one row along x by two taps: out[3 i + c] is row[source[i] + c] * weight[i] +
  // row[source[pixels + i] + c] * weight[pixels + i]. Reads up to `slack` bytes past the last
  // source and writes up to `slack` values past the last output.
  void (*bilinear)(const std::uint8_t* row, const std::int32_t* source, const float* weight,
                   float* out, std::size_t pixels);
  // out[i] = (sum over t of rows[t][i] * weight[t]) * scale + shift[i]
  void (*blend)(const WeightedRows& rows, const Finish& finish, float* out, std::size_t n);
};

constexpr std::size_t slack = 4;

const PixelLoops& plain_pixel_loops();
const PixelLoops& avx2_pixel_loops();    // requires a processor with AVX2 and FMA
const PixelLoops& avx512_pixel_loops();  // requires AVX-512 F, BW, CD, DQ and VL too

}  // namespace cnn::data::simd
