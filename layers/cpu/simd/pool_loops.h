#pragma once

#include <cstdint>

#include "layers/cpu/simd/flat_loops.h"
#include "layers/cpu/simd/max_pool.h"

// The loop of a max pool, as a template of the vector type V and the element type T.
namespace cnn::layers::cpu {

// The pixels of the image that the window of one output covers. left: its first column, which may
// lie outside the image.
struct PoolWindow {
  std::int64_t left = 0;
  std::int64_t first_row = 0, end_row = 0, first_column = 0, end_column = 0;
};

// Writes the maximum of one vector of channels, and its place within the window, at element `to`.
template <class V, class T, class Lanes>
void max_of_window(const MaxPoolRow& of, const PoolWindow& window, std::int64_t channel,
                   std::int64_t to, Lanes lanes) {
  const T* const x = static_cast<const T*>(of.x) + channel;
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return V::load(x + (row * of.width + column) * of.columns, lanes);
  };
  const auto tap = [&](std::int64_t row, std::int64_t column) {
    return V::set(static_cast<float>((row - of.top) * of.kernel_w + column - window.left));
  };
  auto best = at(window.first_row, window.first_column);
  auto place = tap(window.first_row, window.first_column);
  for (std::int64_t row = window.first_row; row < window.end_row; ++row) {
    for (std::int64_t column = window.first_column; column < window.end_column; ++column) {
      V::take_larger(at(row, column), tap(row, column), best, place);
    }
  }
  V::store(static_cast<T*>(of.y) + to, best, lanes);
  if (of.indices != nullptr) {
    V::store(of.indices + to, place, lanes);
  }
}

template <class V, class T>
void max_pool(const MaxPoolRow& of) {
  PoolWindow window;
  window.first_row = of.top < 0 ? 0 : of.top;
  window.end_row = of.top + of.kernel_h < of.height ? of.top + of.kernel_h : of.height;
  for (std::int64_t output = 0; output < of.outputs; ++output) {
    window.left = of.left + output * of.stride_w;
    const std::int64_t end = window.left + of.kernel_w;
    window.first_column = window.left < 0 ? 0 : window.left;
    window.end_column = end < of.width ? end : of.width;
    each_vector<V>(of.columns, [&](std::int64_t channel, auto lanes) {
      max_of_window<V, T>(of, window, channel, output * of.columns + channel, lanes);
    });
  }
}

template <class V>
constexpr MaxPoolLoops make_max_pool() {
  return {.f32 = max_pool<V, float>, .bf16 = max_pool<V, std::uint16_t>};
}

}  // namespace cnn::layers::cpu
