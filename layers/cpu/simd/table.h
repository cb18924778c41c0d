#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "layers/cpu/simd/few_channels_loops.h"
#include "layers/cpu/simd/flat_loops.h"
#include "layers/cpu/simd/loops.h"
#include "layers/cpu/simd/matrix_loops.h"
#include "layers/cpu/simd/pointwise_loops.h"
#include "layers/cpu/simd/update_loops.h"
#include "layers/cpu/simd/winograd_loops.h"

namespace cnn::layers::cpu {

template <class V, class T>
constexpr TypedLoops typed_loops() {
  using Flat = FlatLoops<V, T>;
  using Matrix = MatrixLoops<V, T>;
  return {.relu = Flat::relu,
          .relu_backward = Flat::relu_backward,
          .add = Flat::add,
          .scale = Flat::scale,
          .fill = Flat::fill,
          .affine_f32 = Flat::template affine<float>,
          .affine_u8 = Flat::template affine<std::uint8_t>,
          .select = Flat::select,
          .moments = Matrix::moments,
          .column_sums = Matrix::column_sums,
          .normalise = Matrix::normalise,
          .gradient_sums = Matrix::gradient_sums,
          .gradient = Matrix::gradient,
          .repeat = Matrix::repeat,
          .gather = PixelLoops<V, T>::gather,
          .scatter = PixelLoops<V, T>::scatter};
}

template <class V, std::size_t... form>
constexpr std::array<WinogradLoops, sizeof...(form)> winograd_loops(
    std::index_sequence<form...> /*forms*/) {
  return {make_winograd<V, winograd_forms[form]>()...};
}

// Returns every loop compiled for the vectors V.
template <class V>
constexpr Loops make_loops(const char* name) {
  return {.name = name,
          .f32 = typed_loops<V, float>(),
          .bf16 = typed_loops<V, std::uint16_t>(),
          .winograd = winograd_loops<V>(std::make_index_sequence<winograd_form_count>()),
          .pointwise_gradient = PointwiseGradientLoop<V>::run,
          .pointwise_product = PointwiseProductLoop<V>::run,
          .pointwise_pixels = PointwiseProductLoop<V>::pixels_together,
          .few_channels_gradient = FewChannelsGradientLoop<V>::run,
          .bf16_gradient = {},  // loops_avx512_bf16.cpp has these
          .sgd = update_sgd<V>,
          .momentum = update_momentum<V>,
          .rmsprop = update_rmsprop<V>,
          .adam = update_adam<V>,
          .sum_of_squares = sum_of_squares<V>,
          .all_finite = all_finite<V>,
          .random_below = random_below<V>};
}

}  // namespace cnn::layers::cpu
