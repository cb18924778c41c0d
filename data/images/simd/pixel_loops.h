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
// The two taps of output values in groups of `group`, whose sources all lie in one window of bytes.
struct WindowTaps {
  const std::int32_t* window = nullptr;  // for each group, the offset of its window in the row
  const std::uint8_t* index =
      nullptr;                    // in the window: first of all first taps, then of the others
  const float* weight = nullptr;  // likewise
  std::size_t groups = 0;

  static constexpr std::size_t group = 16, bytes = 64;
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
  // Does the same for any sources: out[16 g + j] is, with the window at row + window[g],
  // window[index[32 g + j]] * weight[32 g + j] + window[index[32 g + 16 + j]] * weight[32 g + 16 +
  // j]. Reads whole windows and writes whole groups.
  void (*windows)(const std::uint8_t* row, const WindowTaps& taps, float* out);
  bool has_fast_windows;  // else `bilinear` is as fast
  // out[i] = (sum over t of rows[t][i] * weight[t]) * scale + shift[i]
  void (*blend)(const WeightedRows& rows, const Finish& finish, float* out, std::size_t n);
};

constexpr std::size_t slack = 4;

const PixelLoops& plain_pixel_loops();
const PixelLoops& avx2_pixel_loops();         // requires a processor with AVX2 and FMA
const PixelLoops& avx512_pixel_loops();       // requires AVX-512 F, BW, CD, DQ and VL too
const PixelLoops& avx512_vbmi_pixel_loops();  // requires AVX-512 VBMI too

}  // namespace cnn::data::simd
