#include "layers/cuda/conv_parts.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "tests/support/grid/grid_run.h"

namespace cnn::tests {
namespace {

// The bits of f16 numbers.
constexpr std::uint16_t one = 0x3C00, two = 0x4000, three = 0x4200, half = 0x3800;

TEST(ConvParts, PaddedRowsEndInZeros) {
  alignas(16) std::array<std::uint16_t, 6> from{one, two, three, half, one, two};
  alignas(16) std::array<std::uint16_t, 16> to{};
  to.fill(0xFFFF);
  grid::GridStream stream(grid::Order{});
  layers::cuda::pad_rows(stream, {.from = reinterpret_cast<const std::byte*>(from.data()),
                                  .to = reinterpret_cast<std::byte*>(to.data()),
                                  .rows = 2,
                                  .channels = 3,
                                  .padded = 8});
  EXPECT_EQ(to, (std::array<std::uint16_t, 16>{one, two, three, 0, 0, 0, 0, 0,  //
                                               half, one, two, 0, 0, 0, 0, 0}));
}

TEST(ConvParts, WidenedRowsLoseTheirPadding) {
  alignas(16) std::array<std::uint16_t, 8> from{one, two, three, 0xFFFF, half, one, two, 0xFFFF};
  alignas(16) std::array<float, 6> to{};
  grid::GridStream stream(grid::Order{});
  layers::cuda::widen_rows(stream, {.from = reinterpret_cast<const std::byte*>(from.data()),
                                    .to = to.data(),
                                    .type = DataType::f16,
                                    .rows = 2,
                                    .channels = 3,
                                    .padded = 4});
  EXPECT_EQ(to, (std::array<float, 6>{1, 2, 3, 0.5, 1, 2}));
}

// Row r holds r + c in column c, so column c sums to rows (rows - 1) / 2 + c rows, here all whole
// numbers that f32 holds.
void expect_sums(std::int64_t rows, int columns) {
  std::vector<float> from, expected, sums(static_cast<std::size_t>(columns), -1);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      from.push_back(static_cast<float>(row % 8 + column));
    }
  }
  for (int column = 0; column < columns; ++column) {
    double sum = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      sum += static_cast<double>(row % 8 + column);
    }
    expected.push_back(static_cast<float>(sum));
  }
  std::vector<float> partial(layers::cuda::sum_rows_workspace(rows, columns) / sizeof(float));
  for (const grid::Order order : grid::all_orders()) {
    grid::GridStream stream(order);
    layers::cuda::sum_rows(stream, {.from = reinterpret_cast<const std::byte*>(from.data()),
                                    .type = DataType::f32,
                                    .rows = rows,
                                    .columns = columns,
                                    .pitch = columns,
                                    .sums = sums.data(),
                                    .partial = partial.data()});
    EXPECT_EQ(sums, expected) << rows << " rows of " << columns;
  }
}

TEST(ConvParts, SumsOfRowsCountEveryRowOnce) {
  expect_sums(1, 1);
  expect_sums(1, 1001);  // more packs than threads, and no multiple of a pack
  expect_sums(2, 2048);  // packs in two blocks
  expect_sums(513, 12);  // two chunks, of which the second is shorter
  expect_sums(1300, 3);
}

}  // namespace
}  // namespace cnn::tests
