#include "layers/cpu/simd/small_gemm.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/layers/cpu/sixteen_floats.h"

// Products of small matrices over vectors of 16 floats, on any processor.
namespace cnn::tests {
namespace {

using Gemm = layers::cpu::SmallGemm<SixteenFloats>;

// Matrices whose rows, and vectors of a row, lie apart. Elements are small integers, so that sums
// are exact in any order.
struct Product {
  std::int64_t rows, depth, vectors;
  bool columns_of_a_are_together, add;

  static constexpr std::int64_t width = SixteenFloats::width, gap = 16;
  static constexpr float untouched = 12345;

  static float element_of_a(std::int64_t row, std::int64_t d) {
    return static_cast<float>((row * 5 + d * 3) % 7 - 3);
  }
  static float element_of_b(std::int64_t d, std::int64_t column) {
    return static_cast<float>((d * 2 + column * 3) % 5 - 2);
  }
  std::int64_t a_row() const { return columns_of_a_are_together ? 1 : depth + gap; }
  std::int64_t a_step() const { return columns_of_a_are_together ? rows : 1; }
  std::int64_t b_vector() const { return depth * width + gap; }
  std::int64_t c_vector() const { return rows * width + gap; }

  std::vector<float> a() const {
    std::vector<float> values(static_cast<std::size_t>(rows * (depth + gap)));
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t d = 0; d < depth; ++d) {
        values[static_cast<std::size_t>(row * a_row() + d * a_step())] = element_of_a(row, d);
      }
    }
    return values;
  }
  std::vector<float> b() const {
    std::vector<float> values(static_cast<std::size_t>(vectors * b_vector()));
    for (std::int64_t d = 0; d < depth; ++d) {
      for (std::int64_t column = 0; column < vectors * width; ++column) {
        const std::int64_t at = column / width * b_vector() + d * width + column % width;
        values[static_cast<std::size_t>(at)] = element_of_b(d, column);
      }
    }
    return values;
  }
  std::vector<float> c_before() const {
    return std::vector<float>(static_cast<std::size_t>(vectors * c_vector()), untouched);
  }
  std::vector<float> c_after() const {
    std::vector<float> values = c_before();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < vectors * width; ++column) {
        float sum = add ? untouched : 0;
        for (std::int64_t d = 0; d < depth; ++d) {
          sum += element_of_a(row, d) * element_of_b(d, column);
        }
        const std::int64_t at = column / width * c_vector() + row * width + column % width;
        values[static_cast<std::size_t>(at)] = sum;
      }
    }
    return values;
  }
};

void expect_exact(const Product& product) {
  const std::vector<float> a = product.a(), b = product.b();
  std::vector<float> c = product.c_before();
  Gemm::multiply({.a = a.data(),
                  .b = b.data(),
                  .c = c.data(),
                  .rows = product.rows,
                  .depth = product.depth,
                  .columns = product.vectors * Product::width,
                  .a_row = product.a_row(),
                  .a_step = product.a_step(),
                  .b_step = Product::width,
                  .b_vector = product.b_vector(),
                  .c_row = Product::width,
                  .c_vector = product.c_vector(),
                  .add = product.add});
  EXPECT_EQ(c, product.c_after()) << product.rows << " rows, depth " << product.depth << ", "
                                  << product.vectors << " vectors";
}

TEST(SmallGemm, ComputesExactSumsOfAnyRowsVectorsAndDepth) {
  for (std::int64_t vectors = 1; vectors <= Gemm::max_vectors; ++vectors) {
    for (std::int64_t rows = 1; rows <= 26; ++rows) {
      for (const std::int64_t depth : {1, 17, 96, 97, 300}) {
        for (const bool together : {false, true}) {
          expect_exact({.rows = rows,
                        .depth = depth,
                        .vectors = vectors,
                        .columns_of_a_are_together = together,
                        .add = rows % 2 == 0});
        }
      }
    }
  }
}

}  // namespace
}  // namespace cnn::tests
