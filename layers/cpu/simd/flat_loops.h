#pragma once

#include <cstdint>

#include "layers/cpu/simd/loops.h"

// Element-wise loops over arrays, as templates of the vector type V and the element type T.
namespace cnn::layers::cpu {

// Calls body(i, lanes) for every vector of [0, n); the last may be a partial vector.
template <class V, class Body>
void each_vector(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + V::width <= n; i += V::width) {
    body(i, typename V::All{});
  }
  if (i < n) {
    body(i, V::first(n - i));
  }
}

// Loads the bits of a vector's lanes, lowest bit first: eight per byte, from `bytes` existing bytes
// that are `apart` bytes apart.
template <class V>
[[gnu::always_inline]] inline unsigned bits_at(const std::uint8_t* from, std::int64_t apart,
                                               std::int64_t bytes) {
  unsigned bits = bytes > 0 ? from[0] : 0U;
  if constexpr (V::width > 8) {
    bits |= bytes > 1 ? static_cast<unsigned>(from[apart]) << 8U : 0U;
  }
  return bits;
}
template <class V>
[[gnu::always_inline]] inline void set_bits_at(std::uint8_t* to, std::int64_t apart,
                                               std::int64_t bytes, unsigned bits) {
  if (bytes > 0) {
    to[0] = static_cast<std::uint8_t>(bits);
  }
  if constexpr (V::width > 8) {
    if (bytes > 1) {
      to[apart] = static_cast<std::uint8_t>(bits >> 8U);
    }
  }
}

// Store policies: into the cache, or non-temporal for results larger than any cache, which avoids
// reading the overwritten lines. Streamed stores must write whole lines, and few streams at a time.
template <class V>
struct Cached {
  template <class T, class Lanes>
  static void store(T* to, typename V::Float value, Lanes lanes) {
    V::store(to, value, lanes);
  }
};
template <class V>
struct Streamed {
  template <class T>
  static void store(T* to, typename V::Float value, typename V::All) {
    V::stream(to, value);
  }
  template <class T>
  static void store(T* to, typename V::Float value, typename V::First lanes) {
    V::store(to, value, lanes);
  }
};

// Calls run(store) with the requested policy; rows that are not aligned vectors use the cache.
template <class V, class T, class Run>
void with_store(bool stream, const void* to, std::int64_t columns, const Run& run) {
  constexpr std::uint64_t bytes = static_cast<std::uint64_t>(V::width) * sizeof(T);
  const bool aligned = reinterpret_cast<std::uintptr_t>(to) % bytes == 0 && columns % V::width == 0;
  if (stream && aligned) {
    run(Streamed<V>{});
    V::fence();
  } else {
    run(Cached<V>{});
  }
}

template <class V, class T>
struct FlatLoops {
  static void relu(const void* from, void* to, std::int64_t n, float limit) {
    const T* x = static_cast<const T*>(from);
    T* y = static_cast<T*>(to);
    const auto upper = V::set(limit);
    each_vector<V>(n, [&](std::int64_t i, auto lanes) {  // operand order: NaN stays NaN
      V::store(y + i, V::min(upper, V::max(V::zero(), V::load(x + i, lanes))), lanes);
    });
  }

  static void relu_backward(const void* grad, const void* out, void* to, std::int64_t n,
                            float limit) {
    const T* dy = static_cast<const T*>(grad);
    const T* y = static_cast<const T*>(out);
    T* dx = static_cast<T*>(to);
    // A NaN limit keeps the gate open: a limit of infinity would close it for an infinite y.
    const auto upper = V::set(limit == __builtin_inff() ? __builtin_nanf("") : limit);
    each_vector<V>(n, [&](std::int64_t i, auto lanes) {
      const auto value = V::load(y + i, lanes);
      const auto above = V::gated(V::load(dy + i, lanes), value, V::zero());
      V::store(dx + i, V::gated(above, upper, value), lanes);
    });
  }

  template <class Store>
  static void add_arrays(const AddArrays& arrays, Store) {
    const T* const* x = reinterpret_cast<const T* const*>(arrays.x);
    T* y = static_cast<T*>(arrays.y);
    // Without a ReLU the bound is -infinity; max keeps a NaN in its second operand.
    const auto bound = V::set(arrays.relu ? 0 : -__builtin_inff());
    if (arrays.inputs == 2) {  // the most frequent case
      const T *a = x[0], *b = x[1];
      each_vector<V>(arrays.n, [&](std::int64_t i, auto lanes) {
        Store::store(y + i, V::max(bound, V::load(a + i, lanes) + V::load(b + i, lanes)), lanes);
      });
      return;
    }
    each_vector<V>(arrays.n, [&](std::int64_t i, auto lanes) {
      auto sum = V::load(x[0] + i, lanes);
      for (std::int64_t k = 1; k < arrays.inputs; ++k) {
        sum = sum + V::load(x[k] + i, lanes);
      }
      Store::store(y + i, V::max(bound, sum), lanes);
    });
  }

  static void add(const AddArrays& arrays) {
    with_store<V, T>(arrays.stream, arrays.y, V::width,
                     [&](auto store) { add_arrays(arrays, store); });
  }

  static void scale(const void* from, void* to, std::int64_t n, float factor) {
    const T* x = static_cast<const T*>(from);
    T* y = static_cast<T*>(to);
    const auto by = V::set(factor);
    each_vector<V>(
        n, [&](std::int64_t i, auto lanes) { V::store(y + i, by * V::load(x + i, lanes), lanes); });
  }

  static void fill(void* to, std::int64_t n, float value) {
    T* y = static_cast<T*>(to);
    const auto all = V::set(value);
    each_vector<V>(n, [&](std::int64_t i, auto lanes) { V::store(y + i, all, lanes); });
  }

  template <class From>
  static void affine(const From* x, void* to, std::int64_t n, const float* scale_and_shift) {
    T* y = static_cast<T*>(to);
    const auto by = V::set(scale_and_shift[0]);
    const auto shift = V::set(scale_and_shift[1]);
    each_vector<V>(n, [&](std::int64_t i, auto lanes) {
      V::store(y + i, V::fma(V::load(x + i, lanes), by, shift), lanes);
    });
  }

  static void select(const void* from, void* to, std::int64_t n, const std::uint8_t* keep,
                     float divisor) {
    const T* x = static_cast<const T*>(from);
    T* y = static_cast<T*>(to);
    const auto by = V::set(divisor);
    each_vector<V>(n, [&](std::int64_t i, auto lanes) {
      V::store(y + i,
               V::gated(V::load(x + i, lanes) / by, bits_at<V>(keep + i / 8, 1, V::width / 8)),
               lanes);
    });
  }
};

// Accumulates in double: the sum has millions of squares.
template <class V>
struct SumOfSquares {
  typename V::Wide low = V::wide_zero(), high = V::wide_zero();

  void add(typename V::Float value) {
    low = V::wide_fma(V::wide_low(value), V::wide_low(value), low);
    high = V::wide_fma(V::wide_high(value), V::wide_high(value), high);
  }
  double total() const {
    double parts[V::wide_width];
    V::wide_store(parts, low + high);
    double sum = 0;
    for (const double part : parts) {
      sum += part;
    }
    return sum;
  }
};

template <class V>
double sum_of_squares(const float* x, std::int64_t n) {
  SumOfSquares<V> sum;
  each_vector<V>(n, [&](std::int64_t i, auto lanes) { sum.add(V::load(x + i, lanes)); });
  return sum.total();
}

template <class V>
bool all_finite(const float* x, std::int64_t n) {
  bool finite = true;
  each_vector<V>(n, [&](std::int64_t i, auto lanes) {
    finite = finite && !V::any_not_finite(V::load(x + i, lanes));
  });
  return finite;
}

// The hash of random_bits() in layers/initializer.h; V only names the variant, and the compiler
// vectorises the inner loop.
template <class V>
void random_below(std::uint64_t stream, std::uint64_t first, std::int64_t n,
                  std::uint32_t threshold, std::uint8_t* keep) {
  for (std::int64_t i = 0; i < n; i += 8) {
    std::uint64_t chosen[8];
    for (std::uint64_t k = 0; k < 8; ++k) {
      const std::uint64_t index = first + static_cast<std::uint64_t>(i) + k;
      std::uint64_t z = stream + (index + 1) * 0x9E3779B97F4A7C15ULL;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
      z = (z ^ (z >> 31)) >> 40;
      chosen[k] = z < threshold ? 1ULL << k : 0;
    }
    std::uint64_t bits = 0;
    for (const std::uint64_t bit : chosen) {
      bits |= bit;
    }
    keep[i / 8] = static_cast<std::uint8_t>(bits);
  }
}

}  // namespace cnn::layers::cpu
