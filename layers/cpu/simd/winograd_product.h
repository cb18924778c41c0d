#pragma once

#include <array>
#include <cstdint>
#include <utility>

// Products of small matrices that lie in the caches: what Winograd's algorithm spends its time in.
// Templates of the vector type V, as all loops.
namespace cnn::layers::cpu {

// c[rows][columns] (+)= a[rows][depth] b[depth][columns]; a row of b has `columns` elements,
// columns is one or two vectors.
struct Product {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  std::int64_t rows = 0, depth = 0, columns = 0;
  std::int64_t a_row = 0, a_step = 0;  // from one row of a to the next, from one column to the next
  std::int64_t b_step = 0, c_row = 0;
  bool add = false;
};

template <class V>
class Products {
 public:
  // In groups of rows whose sums fit the registers, all about as large, over a depth whose part of
  // b stays in the first-level cache while the groups pass over it.
  static void multiply(const Product& of) {
    const std::int64_t parts = (of.depth + most_depth - 1) / most_depth;
    Product part = of;
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t first = of.depth * i / parts;
      part.a = of.a + first * of.a_step;
      part.b = of.b + first * of.b_step;
      part.depth = of.depth * (i + 1) / parts - first;
      part.add = of.add || i > 0;
      by_rows(part);
    }
  }

 private:
  using Float = typename V::Float;
  using All = typename V::All;
  using Kernel = void (*)(const Product&);
  // Two sums a row, a vector of b for each, and one element of a: within 32 or 16 registers.
  static constexpr std::int64_t most_rows = V::width == 16 ? 12 : 6;
  static constexpr std::int64_t most_depth = 128;

  static void by_rows(const Product& of) {
    const std::int64_t pieces = (of.rows + most_rows - 1) / most_rows;
    const auto& kernels = of.columns == V::width ? narrow : wide;
    Product piece = of;
    for (std::int64_t i = 0; i < pieces; ++i) {
      const std::int64_t first = of.rows * i / pieces;
      const std::int64_t count = of.rows * (i + 1) / pieces - first;
      piece.a = of.a + first * of.a_row;
      piece.c = of.c + first * of.c_row;
      kernels[static_cast<std::size_t>(count - 1)](piece);
    }
  }

  template <int rows, int vectors>
  static void kernel(const Product& of) {
    Float sums[rows * vectors];
    if (of.add) {
#pragma GCC unroll 24
      for (int i = 0; i < rows * vectors; ++i) {
        sums[i] = V::load(of.c + i / vectors * of.c_row + i % vectors * V::width, All{});
      }
    } else {
#pragma GCC unroll 24
      for (int i = 0; i < rows * vectors; ++i) {
        sums[i] = V::zero();
      }
    }
    const float* a = of.a;
    const float* b = of.b;
    const std::int64_t a_row = of.a_row, a_step = of.a_step, b_step = of.b_step;
    for (std::int64_t d = of.depth; d > 0; --d) {
      if (d % 16 == 0) {
#pragma GCC unroll 12
        for (int r = 0; r < rows; ++r) {
          __builtin_prefetch(a + r * a_row + 16);
        }
      }
      Float factors[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        factors[v] = V::load(b + v * V::width, All{});
      }
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) {
        const Float element = V::set(a[r * a_row]);
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
          sums[r * vectors + v] = V::fma(element, factors[v], sums[r * vectors + v]);
        }
      }
      a += a_step;
      b += b_step;
    }
#pragma GCC unroll 24
    for (int i = 0; i < rows * vectors; ++i) {
      V::store(of.c + i / vectors * of.c_row + i % vectors * V::width, sums[i], All{});
    }
  }

  template <int vectors, int... less>
  static constexpr auto kernels_for(std::integer_sequence<int, less...> /*rows*/) {
    return std::array<Kernel, sizeof...(less)>{kernel<less + 1, vectors>...};
  }
  static constexpr auto narrow =
      kernels_for<1>(std::make_integer_sequence<int, static_cast<int>(most_rows)>{});
  static constexpr auto wide =
      kernels_for<2>(std::make_integer_sequence<int, static_cast<int>(most_rows)>{});
};

}  // namespace cnn::layers::cpu
