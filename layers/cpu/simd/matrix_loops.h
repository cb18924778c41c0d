#pragma once

#include <cstdint>

#include "layers/cpu/simd/flat_loops.h"
#include "layers/cpu/simd/loops.h"

// Loops over matrices of pixels x channels, as templates of the vector type V and the element
// type T. Four rows are handled at once: the per-channel factors and sums, which lie in the
// first-level cache, are then read once for four vectors of memory, and the addresses of each row
// advance in order, which is what prefetchers like.
namespace cnn::layers::cpu {

template <int N>
struct Count {
  static constexpr int value = N;
};

// body(row, column, lanes, Count<4 or 1>) for every group of rows and vector of columns.
template <class V, class Body>
void each_tile(std::int64_t rows, std::int64_t columns, const Body& body) {
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    each_vector<V>(columns,
                   [&](std::int64_t column, auto lanes) { body(row, column, lanes, Count<4>{}); });
  }
  for (; row < rows; ++row) {
    each_vector<V>(columns,
                   [&](std::int64_t column, auto lanes) { body(row, column, lanes, Count<1>{}); });
  }
}

template <class V, class T>
struct MatrixLoops {
  // A block is summed in f32 and then added to sums in double. It is short enough for the rounding
  // of f32 and for the cache: its second reading should not come from memory.
  static std::int64_t block_rows(std::int64_t columns) {
    const std::int64_t fitting = 65536 / columns;
    return fitting > 128 ? 128 : fitting < 8 ? 8 : fitting;
  }

  static void column_sums(const void* from, std::int64_t rows, std::int64_t columns, float* sums) {
    const T* x = static_cast<const T*>(from);
    each_tile<V>(rows, columns, [&](std::int64_t r, std::int64_t c, auto lanes, auto count) {
      auto sum = V::load(sums + c, lanes);
      for (int k = 0; k < count.value; ++k) {
        sum = sum + V::load(x + (r + k) * columns + c, lanes);
      }
      V::store(sums + c, sum, lanes);
    });
  }

  static void squared_distances(const T* x, std::int64_t rows, std::int64_t columns,
                                const float* mean, float* sums) {
    each_tile<V>(rows, columns, [&](std::int64_t r, std::int64_t c, auto lanes, auto count) {
      const auto centre = V::load(mean + c, lanes);
      auto sum = V::load(sums + c, lanes);
      for (int k = 0; k < count.value; ++k) {
        const auto distance = V::load(x + (r + k) * columns + c, lanes) - centre;
        sum = V::fma(distance, distance, sum);
      }
      V::store(sums + c, sum, lanes);
    });
  }

  // Two passes over each block, so that nothing cancels, and the pairwise formula of T. Chan, G.
  // Golub, R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances",
  // 1979, between blocks.
  static void moments(const void* from, std::int64_t rows, std::int64_t columns, Moments& all) {
    const T* x = static_cast<const T*>(from);
    float* mean = all.scratch;
    float* squares = all.scratch + columns;
    for (std::int64_t row = 0; row < rows; row += block_rows(columns)) {
      const std::int64_t left = rows - row;
      const std::int64_t block = left < block_rows(columns) ? left : block_rows(columns);
      const T* here = x + row * columns;
      for (std::int64_t c = 0; c < 2 * columns; ++c) {
        all.scratch[c] = 0;
      }
      column_sums(here, block, columns, mean);
      const float inverse = 1.0F / static_cast<float>(block);
      for (std::int64_t c = 0; c < columns; ++c) {
        mean[c] *= inverse;
      }
      squared_distances(here, block, columns, mean, squares);
      const double before = all.count;
      all.count += static_cast<double>(block);
      const double share = static_cast<double>(block) / all.count;
      for (std::int64_t c = 0; c < columns; ++c) {
        const double distance = static_cast<double>(mean[c]) - all.mean[c];
        all.mean[c] += distance * share;
        all.squares[c] += static_cast<double>(squares[c]) + distance * distance * before * share;
      }
    }
  }

  template <bool with_residual>
  static void normalise_rows(const NormaliseRows& of) {
    const T* x = static_cast<const T*>(of.x);
    const T* residual = static_cast<const T*>(of.residual);
    T* y = static_cast<T*>(of.y);
    const std::int64_t columns = of.columns;
    const auto bound = V::set(of.relu ? 0 : -__builtin_inff());
    each_tile<V>(of.rows, columns, [&](std::int64_t r, std::int64_t c, auto lanes, auto count) {
      const auto mean = V::load(of.mean + c, lanes);
      const auto scale = V::load(of.scale + c, lanes);
      const auto shift = V::load(of.shift + c, lanes);
      for (int k = 0; k < count.value; ++k) {
        const std::int64_t at = (r + k) * columns + c;
        auto value = V::fma(V::load(x + at, lanes) - mean, scale, shift);
        if constexpr (with_residual) {
          value = value + V::load(residual + at, lanes);
        }
        V::store(y + at, V::max(bound, value), lanes);
      }
    });
  }

  static void normalise(const NormaliseRows& of) {
    if (of.residual != nullptr) {
      normalise_rows<true>(of);
    } else {
      normalise_rows<false>(of);
    }
  }

  // The least value whose stored form is above zero is the one after this: half of the smallest
  // bf16 rounds to even, zero.
  static constexpr float rounds_to_zero = sizeof(T) == 2 ? 0x1p-134F : 0.0F;

  // The per-channel part of a gate, and what passes at one vector.
  template <Gate kind, class Lanes>
  struct Gated {
    Gated(const NormaliseGradientRows& of, std::int64_t c, Lanes l)
        : mean(V::load(of.mean + c, l)),
          scale(V::load(of.scale + c, l)),
          shift(V::load(of.shift + c, l)),
          lanes(l) {}
    // distance: x - mean.
    typename V::Float operator()(const NormaliseGradientRows& of, std::int64_t at,
                                 typename V::Float distance) const {
      const auto dy = V::load(static_cast<const T*>(of.dy) + at, lanes);
      if constexpr (kind == Gate::recomputed) {  // the very expression of normalise()
        return V::where_above(dy, V::fma(distance, scale, shift), V::set(rounds_to_zero));
      } else if constexpr (kind == Gate::output) {
        return V::where_above(dy, V::load(static_cast<const T*>(of.y) + at, lanes), V::zero());
      } else {
        return dy;
      }
    }
    typename V::Float mean, scale, shift;
    Lanes lanes;
  };

  template <Gate kind>
  static void block_gradient_sums(const NormaliseGradientRows& of, std::int64_t first,
                                  std::int64_t rows, float* sums) {
    const std::int64_t columns = of.columns;
    const T* x = static_cast<const T*>(of.x) + first * columns;
    each_tile<V>(rows, columns, [&](std::int64_t r, std::int64_t c, auto lanes, auto count) {
      const Gated<kind, decltype(lanes)> gated(of, c, lanes);
      auto sum = V::load(sums + c, lanes);
      auto products = V::load(sums + columns + c, lanes);
      for (int k = 0; k < count.value; ++k) {
        const std::int64_t at = (r + k) * columns + c;
        const auto distance = V::load(x + at, lanes) - gated.mean;
        const auto g = gated(of, first * columns + at, distance);
        if constexpr (kind == Gate::output) {
          if (of.g != nullptr) {
            V::store(static_cast<T*>(of.g) + first * columns + at, g, lanes);
          }
        }
        sum = sum + g;
        products = V::fma(g, distance, products);
      }
      V::store(sums + c, sum, lanes);
      V::store(sums + columns + c, products, lanes);
    });
  }

  static void gradient_sums(const NormaliseGradientRows& of, double* sums, float* scratch) {
    for (std::int64_t row = 0; row < of.rows; row += block_rows(of.columns)) {
      const std::int64_t left = of.rows - row;
      const std::int64_t block = left < block_rows(of.columns) ? left : block_rows(of.columns);
      for (std::int64_t c = 0; c < 2 * of.columns; ++c) {
        scratch[c] = 0;
      }
      if (of.gate == Gate::open) {
        block_gradient_sums<Gate::open>(of, row, block, scratch);
      } else if (of.gate == Gate::recomputed) {
        block_gradient_sums<Gate::recomputed>(of, row, block, scratch);
      } else {
        block_gradient_sums<Gate::output>(of, row, block, scratch);
      }
      for (std::int64_t c = 0; c < 2 * of.columns; ++c) {
        sums[c] += static_cast<double>(scratch[c]);
      }
    }
  }

  template <Gate kind>
  static void gradient_rows(const NormaliseGradientRows& of) {
    const std::int64_t columns = of.columns;
    const T* x = static_cast<const T*>(of.x);
    T* dx = static_cast<T*>(of.dx);
    each_tile<V>(of.rows, columns, [&](std::int64_t r, std::int64_t c, auto lanes, auto count) {
      const Gated<kind, decltype(lanes)> gated(of, c, lanes);
      const auto slope = V::load(of.slope + c, lanes);
      const auto offset = V::load(of.offset + c, lanes);
      for (int k = 0; k < count.value; ++k) {
        const std::int64_t at = (r + k) * columns + c;
        const auto distance = V::load(x + at, lanes) - gated.mean;
        const auto g = gated(of, at, distance);
        V::store(dx + at, V::fma(g, gated.scale, V::fma(distance, slope, offset)), lanes);
      }
    });
  }

  static void gradient(const NormaliseGradientRows& of) {
    if (of.gate == Gate::recomputed) {
      gradient_rows<Gate::recomputed>(of);
    } else if (of.gate == Gate::output) {
      gradient_rows<Gate::output>(of);
    } else {
      gradient_rows<Gate::open>(of);
    }
  }

  static void repeat(const float* values, void* to, std::int64_t rows, std::int64_t columns) {
    T* y = static_cast<T*>(to);
    each_tile<V>(rows, columns, [&](std::int64_t r, std::int64_t c, auto lanes, auto count) {
      const auto value = V::load(values + c, lanes);
      for (int k = 0; k < count.value; ++k) {
        V::store(y + (r + k) * columns + c, value, lanes);
      }
    });
  }
};

}  // namespace cnn::layers::cpu
