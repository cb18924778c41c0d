#pragma once

#include <cstdint>

// Holds what the loops with matrix tiles (Intel AMX) share: constants alone, since each file that
// includes it is compiled for its own instruction set.
namespace cnn::layers::cpu {

// The memory format of a configuration of the tiles.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
// All eight tiles have 16 rows of 64 bytes.
inline constexpr TileShapes full_tiles;

}  // namespace cnn::layers::cpu
