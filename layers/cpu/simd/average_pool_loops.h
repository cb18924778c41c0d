#pragma once

#include <cstdint>

#include "layers/cpu/simd/average_pool.h"
#include "layers/cpu/simd/flat_loops.h"

// The loop of average pools, as a template of the vector type V and the element type T.
namespace cnn::layers::cpu {

// Adds the rows first, since their elements lie together, and then the columns: k + k instead of
// k k additions for a window of k x k pixels.
template <class V, class T>
void average_pool(const AveragePoolRow& row) {
  const std::int64_t channels = row.channels, elements = row.width * channels;
  const T* const first = static_cast<const T*>(row.from) + row.rows.begin * elements;
  each_vector<V>(elements, [&](std::int64_t i, auto lanes) {
    auto sum = V::zero();
    const T* from = first + i;
    for (std::int64_t h = row.rows.begin; h < row.rows.end; ++h, from += elements) {
      sum = V::fma(V::load(from, lanes), V::set(row.row_factors[h]), sum);
    }
    V::store(row.sums + i, sum, lanes);
  });
  for (std::int64_t j = 0; j < row.pixels; ++j) {
    T* const to = static_cast<T*>(row.to) + j * channels;
    const auto scale = V::set(row.scale[j]);
    const PixelRange columns = row.columns[j];
    each_vector<V>(channels, [&](std::int64_t channel, auto lanes) {
      auto sum = V::zero();
      const float* from = row.sums + columns.begin * channels + channel;
      for (std::int64_t w = columns.begin; w < columns.end; ++w, from += channels) {
        sum = V::fma(V::load(from, lanes), V::set(row.column_factors[w]), sum);
      }
      V::store(to + channel, sum * scale, lanes);
    });
  }
}

template <class V>
constexpr AveragePoolLoops make_average_pool() {
  return {.f32 = average_pool<V, float>, .bf16 = average_pool<V, std::uint16_t>};
}

}  // namespace cnn::layers::cpu
