#pragma once

#include <cstdint>

#include "layers/cpu/simd/winograd.h"

// Iterates over the tiles of images, see winograd.h. Templates of the vector type V.
namespace cnn::layers::cpu {

// The position of a tile.
struct WinogradTile {
  std::int64_t image = 0, row = 0, column = 0;  // row and column in tiles
};

// An iterator over tiles by number.
template <class V>
class TileWalk {
 public:
  TileWalk(const WinogradTiles& tiles, std::int64_t first) : tiles_(tiles) {
    const std::int64_t line = first / tiles.wide;
    at_ = {line / tiles.high, line % tiles.high, first % tiles.wide};
  }
  const WinogradTile& at() const { return at_; }
  void next() {
    if (++at_.column == tiles_.wide) {
      at_.column = 0;
      if (++at_.row == tiles_.high) {
        at_.row = 0;
        ++at_.image;
      }
    }
  }

 private:
  WinogradTiles tiles_;
  WinogradTile at_;
};

}  // namespace cnn::layers::cpu
