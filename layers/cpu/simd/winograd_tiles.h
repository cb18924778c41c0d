#pragma once

#include <cstdint>

#include "layers/cpu/simd/winograd.h"

// The small transforms of Winograd's algorithm for F(2x2, 3x3) in vectors of channels, see
// winograd.h. Templates of the vector type V, as all loops.
namespace cnn::layers::cpu {

// Where a tile begins.
struct WinogradTile {
  std::int64_t image = 0, row = 0, column = 0;  // row and column in tiles
};

// The walk over tiles by number.
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

template <class V>
struct WinogradTransforms {
  using Float = typename V::Float;
  using All = typename V::All;

  // B^T x B in place.
  [[gnu::always_inline]] static void input(Float (&d)[16]) {
    for (int j = 0; j < 4; ++j) {
      input_line(d[j], d[4 + j], d[8 + j], d[12 + j]);
    }
    for (int i = 0; i < 4; ++i) {
      input_line(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]);
    }
  }

  // A^T m A.
  [[gnu::always_inline]] static void output(const Float (&m)[16], Float (&y)[4]) {
    Float upper[4], lower[4];
    for (int j = 0; j < 4; ++j) {
      upper[j] = m[j] + m[4 + j] + m[8 + j];
      lower[j] = m[4 + j] - m[8 + j] - m[12 + j];
    }
    y[0] = upper[0] + upper[1] + upper[2];
    y[1] = upper[1] - upper[2] - upper[3];
    y[2] = lower[0] + lower[1] + lower[2];
    y[3] = lower[1] - lower[2] - lower[3];
  }

  // A dy A^T.
  [[gnu::always_inline]] static void output_gradient(const Float (&dy)[4], Float (&q)[16]) {
    const Line<4> columns[2] = {gradient_line(dy[0], dy[2]), gradient_line(dy[1], dy[3])};
    for (int i = 0; i < 4; ++i) {
      const Line<4> line = gradient_line(columns[0].of[i], columns[1].of[i]);
      for (int j = 0; j < 4; ++j) {
        q[4 * i + j] = line.of[j];
      }
    }
  }

  // G w G^T.
  [[gnu::always_inline]] static void weights(const Float (&w)[9], Float (&u)[16]) {
    const Float half = V::set(0.5F);
    Line<4> columns[3];
    for (int j = 0; j < 3; ++j) {
      columns[j] = weights_line(w[j], w[3 + j], w[6 + j], half);
    }
    for (int i = 0; i < 4; ++i) {
      const Line<4> line = weights_line(columns[0].of[i], columns[1].of[i], columns[2].of[i], half);
      for (int j = 0; j < 4; ++j) {
        u[4 * i + j] = line.of[j];
      }
    }
  }

  // G^T u G.
  [[gnu::always_inline]] static void weights_gradient(const Float (&u)[16], Float (&w)[9]) {
    const Float half = V::set(0.5F);
    Line<3> columns[4];
    for (int j = 0; j < 4; ++j) {
      columns[j] = taps_line(u[j], u[4 + j], u[8 + j], u[12 + j], half);
    }
    for (int i = 0; i < 3; ++i) {
      const Line<3> line =
          taps_line(columns[0].of[i], columns[1].of[i], columns[2].of[i], columns[3].of[i], half);
      for (int j = 0; j < 3; ++j) {
        w[3 * i + j] = line.of[j];
      }
    }
  }

 private:
  template <int length>
  struct Line {
    Float of[length];
  };

  [[gnu::always_inline]] static void input_line(Float& a, Float& b, Float& c, Float& d) {
    const Float first = a - c, second = b + c, third = c - b, fourth = b - d;
    a = first;
    b = second;
    c = third;
    d = fourth;
  }
  [[gnu::always_inline]] static Line<4> gradient_line(Float a, Float b) {
    return {{a, a + b, a - b, V::zero() - b}};
  }
  [[gnu::always_inline]] static Line<4> weights_line(Float a, Float b, Float c, Float half) {
    const Float ends = a + c;
    return {{a, half * (ends + b), half * (ends - b), c}};
  }
  [[gnu::always_inline]] static Line<3> taps_line(Float a, Float b, Float c, Float d, Float half) {
    const Float sum = half * (b + c);
    return {{a + sum, half * (b - c), sum + d}};
  }
};

}  // namespace cnn::layers::cpu
