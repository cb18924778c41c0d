#pragma once

#include <array>
#include <cstdint>
#include <utility>

// Products of small matrices that lie in the caches, in which our own convolutions spend their
// time. Templates of the vector type V, as all loops.
namespace cnn::layers::cpu {

// c[rows][columns] (+)= a[rows][depth] b[depth][columns], where columns is a few vectors, at most
// SmallGemm::max_vectors. Distances are in elements.
struct GemmTask {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  std::int64_t rows = 0, depth = 0, columns = 0;
  std::int64_t a_row = 0, a_step = 0;  // from one row of a to the next, from one column to the next
  std::int64_t b_step = 0, b_vector = 0;  // from one row of b to the next, and between its vectors
  std::int64_t c_row = 0, c_vector = 0;   // likewise
  bool add = false;
  // Data that a later product reads: 16 elements of it are prefetched for each step of the depth,
  // prefetch_row further on for each group of rows. Only for a_row = 1; null prefetches nothing
  // new.
  const float* prefetch = nullptr;
  std::int64_t prefetch_row = 0;
  // The b of the next product, without gaps, to be brought into the second-level cache while this
  // one runs; null: none. Only for a_row > 1.
  const float* next_b = nullptr;
};

template <class V>
class SmallGemm {
 public:
  // Four vectors of b and six rows take ten loads for 24 sums, two and twelve fourteen: while
  // another processor shares the core, that is 15 to 21 % faster. Sixteen registers hold two and
  // six.
  static constexpr int max_vectors = V::width == 16 ? 4 : 2;

  // Returns the rows of a group: all sums, a vector of b for each sum of a row, and one element of
  // a fit 32 or 16 registers.
  static constexpr int max_rows(int vectors) {
    constexpr int most = V::width == 16 ? 12 : 6;
    return vectors <= 2 ? most : 2 * most / vectors;
  }

  // Multiplies in groups of rows whose sums fit the registers, all about as large, over a depth
  // whose part of b stays in the first-level cache while the groups pass over it.
  static void multiply(const GemmTask& task) {
    // With four vectors, 64 and 128 are 2 to 4 % slower.
    const std::int64_t max_depth = task.columns > 2 * V::width ? 96 : 128;
    const std::int64_t parts = (task.depth + max_depth - 1) / max_depth;
    GemmTask part = task;
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t first = task.depth * i / parts;
      part.a = task.a + first * task.a_step;
      part.b = task.b + first * task.b_step;
      part.depth = task.depth * (i + 1) / parts - first;
      part.add = task.add || i > 0;
      part.next_b = i + 1 < parts ? part.b + part.depth * task.b_step : task.next_b;
      multiply_block(part);
    }
  }

  // Does the same without cutting the depth, which is a few hundred at most.
  static void multiply_block(const GemmTask& task) {
    if (task.columns == max_vectors * V::width) {  // by the table, gradients with AVX2 lose 2 %
      block<max_vectors>(task);
    } else {
      blocks[static_cast<std::size_t>(task.columns / V::width - 1)](task);
    }
  }

 private:
  using Float = typename V::Float;
  using All = typename V::All;
  using Kernel = void (*)(const GemmTask&);
  // Cache lines of the next b that a group of rows prefetches in 16 steps of the depth: with two
  // vectors, eight groups prefetch all of it, with four sixteen.
  static constexpr int lines_of_next = V::width / 4;

  // The addresses of one column of a. unit: its rows are one element apart, so that one register
  // serves all of them. Else there is a pointer for each three rows, as an address has one register
  // times 1 or 2 beside its base: with one pointer for all, addresses are loaded from the stack in
  // every step, and a kernel of 12 rows reaches 78 % of the peak instead of 95 %.
  template <int rows, bool unit>
  class Column {
   public:
    [[gnu::always_inline]] explicit Column(const GemmTask& task)
        : row_(unit ? 1 : task.a_row), step_(unit ? task.a_step : 1) {
#pragma GCC unroll 4
      for (int i = 0; i < pointers; ++i) {
        first_[i] = task.a + static_cast<std::int64_t>(i * rows_of_pointer) * row_;
      }
    }
    [[gnu::always_inline]] const float* row(int r) const {
      return first_[r / rows_of_pointer] + r % rows_of_pointer * row_;
    }
    [[gnu::always_inline]] void advance() {
#pragma GCC unroll 4
      for (int i = 0; i < pointers; ++i) {
        first_[i] += step_;
      }
    }

   private:
    static constexpr int pointers = unit ? 1 : (rows + 2) / 3;
    static constexpr int rows_of_pointer = (rows + pointers - 1) / pointers;
    const float* first_[pointers];
    std::int64_t row_, step_;
  };

  template <int rows, int vectors>
  [[gnu::always_inline]] static void begin_sums(const GemmTask& task,
                                                Float (&sums)[rows * vectors]) {
    if (task.add) {
#pragma GCC unroll 24
      for (int i = 0; i < rows * vectors; ++i) {
        sums[i] = V::load(task.c + i / vectors * task.c_row + i % vectors * task.c_vector, All{});
      }
    } else {
#pragma GCC unroll 24
      for (int i = 0; i < rows * vectors; ++i) {
        sums[i] = V::zero();
      }
    }
  }

  template <int rows, int vectors, bool unit>
  static void kernel(const GemmTask& task) {
    Float sums[rows * vectors];
    begin_sums<rows, vectors>(task, sums);
    Column<rows, unit> a(task);
    const float* b = task.b;
    [[maybe_unused]] const float *prefetch = task.prefetch, *next_b = task.next_b;
    const std::int64_t b_step = task.b_step, b_vector = task.b_vector;
    for (std::int64_t d = task.depth; d > 0; --d, a.advance(), b += b_step) {
      if constexpr (unit) {
        __builtin_prefetch(prefetch);
        prefetch += 16;
      } else if (d % 16 == 0) {
#pragma GCC unroll 12
        for (int r = 0; r < rows; ++r) {
          __builtin_prefetch(a.row(r) + 16);
        }
#pragma GCC unroll 4
        for (int k = 0; k < lines_of_next; ++k, next_b += 16) {
          __builtin_prefetch(next_b, 0, 2);
        }
      }
      Float factors[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        factors[v] = V::load(b + v * b_vector, All{});
      }
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) {
        const Float element = V::set(*a.row(r));
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          sums[r * vectors + v] = V::fma(element, factors[v], sums[r * vectors + v]);
        }
      }
    }
#pragma GCC unroll 24
    for (int i = 0; i < rows * vectors; ++i) {
      V::store(task.c + i / vectors * task.c_row + i % vectors * task.c_vector, sums[i], All{});
    }
  }

  template <int vectors, bool unit, int... less>
  static constexpr auto kernels_for(std::integer_sequence<int, less...> /*rows*/) {
    return std::array<Kernel, sizeof...(less)>{kernel<less + 1, vectors, unit>...};
  }
  template <int vectors, bool unit>
  static constexpr auto kernels =
      kernels_for<vectors, unit>(std::make_integer_sequence<int, max_rows(vectors)>{});

  // Divides once for all groups: a division takes as long as some steps of a kernel.
  template <int vectors>
  static void block(const GemmTask& task) {
    const auto& by_rows = task.a_row == 1 ? kernels<vectors, true> : kernels<vectors, false>;
    const std::int64_t groups = (task.rows + max_rows(vectors) - 1) / max_rows(vectors);
    const std::int64_t rows = task.rows / groups, longer = task.rows - rows * groups;
    const std::int64_t next_b_of_group = task.depth * task.columns / groups;
    GemmTask group = task;
    group.next_b = task.next_b == nullptr ? task.b : task.next_b;
    for (std::int64_t i = 0; i < groups; ++i) {
      const std::int64_t count = i < longer ? rows + 1 : rows;
      group.prefetch = task.prefetch == nullptr ? task.a : task.prefetch + i * task.prefetch_row;
      by_rows[static_cast<std::size_t>(count - 1)](group);
      group.a += count * task.a_row;
      group.c += count * task.c_row;
      group.next_b += next_b_of_group;
    }
  }

  template <int... less>
  static constexpr auto blocks_for(std::integer_sequence<int, less...> /*vectors*/) {
    return std::array<Kernel, sizeof...(less)>{block<less + 1>...};
  }
  static constexpr auto blocks = blocks_for(std::make_integer_sequence<int, max_vectors>{});
};

}  // namespace cnn::layers::cpu
