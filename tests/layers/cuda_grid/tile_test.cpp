// How images are cut into blocks: as many as a device holds at once, and no row twice.

#include "layers/cuda/tile.cuh"

#include <gtest/gtest.h>

#include "layers/cuda/flat.cuh"

namespace cnn::tests {
namespace {

using layers::cuda::columns_of;
using layers::cuda::flat_grid;
using layers::cuda::in_one_wave;
using layers::cuda::Tile;

constexpr std::int64_t all_channels[] = {1, 3, 12, 64, 100, 256, 2048};
constexpr std::int64_t all_rows[] = {1, 7, 3136, 50176, 802816};
// An A100 with two blocks of 256 threads on each multiprocessor, an H100 with three and eight.
constexpr std::int64_t all_at_once[] = {1, 216, 396, 1056};

TEST(Tile, HasNoMoreBlocksThanTheDeviceHoldsAtOnce) {
  for (const std::int64_t channels : all_channels) {
    for (const std::int64_t rows : all_rows) {
      for (const std::int64_t resident_blocks : all_at_once) {
        const Tile tile = in_one_wave(columns_of(rows, channels, DataType::f16), resident_blocks);
        const std::int64_t blocks = std::int64_t{tile.column_groups} * tile.chunks;
        EXPECT_LE(blocks, std::max<std::int64_t>(resident_blocks, tile.column_groups));
      }
    }
  }
}

TEST(Tile, HasEveryRowInOneChunk) {
  for (const std::int64_t rows : all_rows) {
    for (const std::int64_t resident_blocks : all_at_once) {
      const Tile tile = in_one_wave(columns_of(rows, 64, DataType::f16), resident_blocks);
      std::int64_t next = 0;
      for (int chunk = 0; chunk < tile.chunks; ++chunk) {
        EXPECT_EQ(tile.first_row(chunk), next);
        next = tile.end_row(chunk);
        EXPECT_GT(next, tile.first_row(chunk));
      }
      EXPECT_EQ(next, rows);
    }
  }
}

// 802,816 rows of 64 channels: one group of eight columns, so a block for every chunk.
TEST(Tile, FillsTheDevice) {
  for (const std::int64_t resident_blocks : {216, 396, 1056}) {
    const Tile tile = in_one_wave(columns_of(802816, 64, DataType::f16), resident_blocks);
    EXPECT_GE(tile.chunks, resident_blocks * 99 / 100);
  }
}

TEST(Tile, SpendsNoBlockOnLessThanFourRowsAThread) {
  const Tile tile = in_one_wave(columns_of(3136, 64, DataType::f16), 100000);
  EXPECT_GT(tile.height, 3 * tile.lines());
}

TEST(FlatGrid, HasAThreadForEachItemAsFarAsTheDeviceHoldsThem) {
  EXPECT_EQ(flat_grid(1, 396).x, 1U);
  EXPECT_EQ(flat_grid(0, 396).x, 1U);
  EXPECT_EQ(flat_grid(257, 396).x, 2U);
  EXPECT_EQ(flat_grid(std::int64_t{1} << 40U, 396).x, 396U);
}

}  // namespace
}  // namespace cnn::tests
