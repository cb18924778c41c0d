#pragma once

#include "layers/cpu/simd/winograd.h"
#include "layers/cpu/simd/winograd_lines.h"

// The transforms of Winograd's algorithm in two dimensions, in vectors of channels, see winograd.h.
// Templates of the vector type V.
namespace cnn::layers::cpu {

template <class V, WinogradForm form>
struct WinogradTransforms {
  using Float = typename V::Float;
  static constexpr int tile_h = static_cast<int>(form.tile_h),
                       tile_w = static_cast<int>(form.tile_w),
                       taps_h = static_cast<int>(form.taps_h),
                       taps_w = static_cast<int>(form.taps_w);
  static constexpr int points_h = tile_h + taps_h - 1, points_w = tile_w + taps_w - 1;
  using Down = WinogradLines<V, tile_h, taps_h>;
  using Along = WinogradLines<V, tile_w, taps_w>;

  // Each transform reads element (i, j) of a rectangle by load(i, j) and passes element (i, j) of
  // the result to store(i, j, value). input: B^T x B.
  template <class Load, class Store>
  [[gnu::always_inline]] static void input(const Load& load, const Store& store) {
    both_ways<points_h, points_h, points_w, points_w>(Down::input, Along::input, load, store);
  }
  // output: A^T m A.
  template <class Load, class Store>
  [[gnu::always_inline]] static void output(const Load& load, const Store& store) {
    both_ways<points_h, tile_h, points_w, tile_w>(Down::output, Along::output, load, store);
  }
  // output_gradient: A dy A^T.
  template <class Load, class Store>
  [[gnu::always_inline]] static void output_gradient(const Load& load, const Store& store) {
    both_ways<tile_h, points_h, tile_w, points_w>(Down::gradient, Along::gradient, load, store);
  }
  // weights: G w G^T.
  template <class Load, class Store>
  [[gnu::always_inline]] static void weights(const Load& load, const Store& store) {
    both_ways<taps_h, points_h, taps_w, points_w>(Down::weights, Along::weights, load, store);
  }
  // weights_gradient: G^T u G.
  template <class Load, class Store>
  [[gnu::always_inline]] static void weights_gradient(const Load& load, const Store& store) {
    both_ways<points_h, taps_h, points_w, taps_w>(Down::taps_of, Along::taps_of, load, store);
  }

 private:
  template <int from, int to>
  using Line = void (*)(const Float (&)[from], Float (&)[to]);

  // Transforms all columns of from_h x from_w elements, then all rows of the result. Columns and
  // rows are loops: unrolled, each element's address would be computed apart, in more registers
  // than there are.
  template <int from_h, int to_h, int from_w, int to_w, class Load, class Store>
  [[gnu::always_inline]] static void both_ways(Line<from_h, to_h> down, Line<from_w, to_w> along,
                                               const Load& load, const Store& store) {
    Float columns[to_h][from_w];
#pragma GCC unroll 1
    for (int j = 0; j < from_w; ++j) {
      Float before[from_h], after[to_h];
#pragma GCC unroll 10
      for (int i = 0; i < from_h; ++i) {
        before[i] = load(i, j);
      }
      down(before, after);
#pragma GCC unroll 10
      for (int i = 0; i < to_h; ++i) {
        columns[i][j] = after[i];
      }
    }
#pragma GCC unroll 1
    for (int i = 0; i < to_h; ++i) {
      Float after[to_w];
      along(columns[i], after);
#pragma GCC unroll 10
      for (int j = 0; j < to_w; ++j) {
        store(i, j, after[j]);
      }
    }
  }
};

}  // namespace cnn::layers::cpu
