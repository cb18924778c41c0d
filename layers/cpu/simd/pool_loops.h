#pragma once

#include <cstdint>

#include "layers/cpu/simd/flat_loops.h"
#include "layers/cpu/simd/max_pool.h"

// The loop of a max pool, as a template of the vector type V and the element type T.
namespace cnn::layers::cpu {

// The image pixels that the window of one output covers. left: the window's first column, which may
// lie outside the image.
struct PoolWindow {
  std::int64_t left = 0;
  std::int64_t first_row = 0, end_row = 0, first_column = 0, end_column = 0;
};

// Outputs that are searched in parallel: each comparison depends on the previous one, and a single
// search would leave execution units idle.
inline constexpr std::int64_t searched_together = 4;

// Writes the maxima, and their places within the windows, for one vector of channels of `count`
// neighbouring outputs. All windows cover the same relative rows and columns. window: of the first
// output, at element `to`.
template <std::int64_t count, class V, class T, class Lanes>
void max_of_windows(const MaxPoolRow& max_pool_row, const PoolWindow& window, std::int64_t channel,
                    std::int64_t to, Lanes lanes) {
  const T* const x = static_cast<const T*>(max_pool_row.x) + channel;
  const std::int64_t step = max_pool_row.stride_w * max_pool_row.columns;
  const auto tap = [&](std::int64_t row, std::int64_t column) {
    return V::set(static_cast<float>((row - max_pool_row.top) * max_pool_row.kernel_w + column -
                                     window.left));
  };
  typename V::Float best[count], place[count];
  typename V::Mask known[count];
  const T* first =
      x + (window.first_row * max_pool_row.width + window.first_column) * max_pool_row.columns;
  const auto first_tap = tap(window.first_row, window.first_column);
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < count; ++i) {
    best[i] = V::load(first + i * step, lanes);
    place[i] = first_tap;
    known[i] = V::not_nan(best[i]);
  }
  for (std::int64_t row = window.first_row; row < window.end_row; ++row) {
    const T* pixel = x + (row * max_pool_row.width + window.first_column) * max_pool_row.columns;
    for (std::int64_t column = window.first_column; column < window.end_column; ++column) {
      const auto at = tap(row, column);
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < count; ++i) {
        V::take_larger(V::load(pixel + i * step, lanes), at, best[i], place[i], known[i]);
      }
      pixel += max_pool_row.columns;
    }
  }
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < count; ++i) {
    V::store(static_cast<T*>(max_pool_row.y) + to + i * max_pool_row.columns, best[i], lanes);
    if (max_pool_row.indices != nullptr) {
      V::store(max_pool_row.indices + to + i * max_pool_row.columns, place[i], lanes);
    }
  }
}

template <class V, class T>
void max_pool(const MaxPoolRow& row) {
  PoolWindow window;
  window.first_row = row.top < 0 ? 0 : row.top;
  window.end_row = row.top + row.kernel_h < row.height ? row.top + row.kernel_h : row.height;
  for (std::int64_t output = 0; output < row.outputs;) {
    window.left = row.left + output * row.stride_w;
    const std::int64_t end = window.left + row.kernel_w;
    window.first_column = window.left < 0 ? 0 : window.left;
    window.end_column = end < row.width ? end : row.width;
    const std::int64_t last = output + searched_together;
    const bool together = window.left >= 0 && last <= row.outputs &&
                          row.left + (last - 1) * row.stride_w + row.kernel_w <= row.width;
    each_vector<V>(row.columns, [&](std::int64_t channel, auto lanes) {
      const std::int64_t to = output * row.columns + channel;
      if (together) {
        max_of_windows<searched_together, V, T>(row, window, channel, to, lanes);
      } else {
        max_of_windows<1, V, T>(row, window, channel, to, lanes);
      }
    });
    output += together ? searched_together : 1;
  }
}

template <class V>
constexpr MaxPoolLoops make_max_pool() {
  return {.f32 = max_pool<V, float>, .bf16 = max_pool<V, std::uint16_t>};
}

}  // namespace cnn::layers::cpu
