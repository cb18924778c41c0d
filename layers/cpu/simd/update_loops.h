#pragma once

#include "layers/cpu/simd/flat_loops.h"
#include "layers/cpu/simd/loops.h"

// The update rules of the optimizers, one pass over a piece of a parameter; formulas in
// layers/optimizer.h.
namespace cnn::layers::cpu {

// rule(w, g, i, lanes) returns the new w. Returns the sum of squares of the old w.
template <class V, class Rule>
double update_each(const UpdatePiece& piece, const UpdateFactors& by, const Rule& rule) {
  const auto unscale = V::set(by.unscale);
  const auto decay = V::set(by.decay);
  const auto upper = V::set(by.clip);
  const auto lower = V::set(-by.clip);
  SumOfSquares<V> squares;
  each_vector<V>(piece.n, [&](std::int64_t i, auto lanes) {
    const auto w = V::load(piece.w + i, lanes);
    squares.add(w);
    auto g = V::fma(decay, w, unscale * V::load(piece.g + i, lanes));
    g = V::max(lower, V::min(upper, g));  // operand order: NaN stays NaN
    V::store(piece.w + i, rule(w, g, i, lanes), lanes);
  });
  return squares.total();
}

template <class V>
double update_sgd(const UpdatePiece& piece, const UpdateFactors& by) {
  const auto rate = V::set(by.rate);
  return update_each<V>(piece, by,
                        [&](auto w, auto g, std::int64_t, auto) { return w - rate * g; });
}

template <class V>
double update_momentum(const UpdatePiece& piece, const UpdateFactors& by) {
  const auto rate = V::set(by.rate);
  const auto momentum = V::set(by.momentum);
  return update_each<V>(piece, by, [&](auto w, auto g, std::int64_t i, auto lanes) {
    const auto a = V::fma(momentum, V::load(piece.slot0 + i, lanes), g);
    V::store(piece.slot0 + i, a, lanes);
    return w - rate * V::fma(momentum, a, g);
  });
}

template <class V>
double update_rmsprop(const UpdatePiece& piece, const UpdateFactors& by) {
  const auto rate = V::set(by.rate);
  const auto momentum = V::set(by.momentum);
  const auto keep = V::set(by.keep0);
  const auto take = V::set(by.take0);
  const auto epsilon = V::set(by.epsilon);
  return update_each<V>(piece, by, [&](auto w, auto g, std::int64_t i, auto lanes) {
    const auto s = V::fma(keep, V::load(piece.slot0 + i, lanes), take * (g * g));
    const auto step = rate * g / V::sqrt(s + epsilon);
    const auto b = V::fma(momentum, V::load(piece.slot1 + i, lanes), step);
    V::store(piece.slot0 + i, s, lanes);
    V::store(piece.slot1 + i, b, lanes);
    return w - b;
  });
}

template <class V>
double update_adam(const UpdatePiece& piece, const UpdateFactors& by) {
  const auto rate = V::set(by.rate);
  const auto keep_m = V::set(by.keep0), take_m = V::set(by.take0);
  const auto keep_v = V::set(by.keep1), take_v = V::set(by.take1);
  const auto epsilon = V::set(by.epsilon);
  return update_each<V>(piece, by, [&](auto w, auto g, std::int64_t i, auto lanes) {
    const auto m = V::fma(keep_m, V::load(piece.slot0 + i, lanes), take_m * g);
    const auto v = V::fma(keep_v, V::load(piece.slot1 + i, lanes), take_v * (g * g));
    V::store(piece.slot0 + i, m, lanes);
    V::store(piece.slot1 + i, v, lanes);
    return w - rate * m / (V::sqrt(v) + epsilon);
  });
}

}  // namespace cnn::layers::cpu
