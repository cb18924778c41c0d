#pragma once

#include <cstdint>

// The transforms of Winograd's algorithm in one dimension, in vectors of channels, see winograd.h.
// Templates of the vector type V.
namespace cnn::layers::cpu {

// The interpolation points of F(tile, taps): zero, infinity, and p and -p for `pairs` values of p,
// with derived constants. Root mean square errors of outputs over 256 channels, relative to those
// of a direct convolution that adds products one after another: 0.6 for 2 x 2 outputs of 3 x 3
// taps, 1.6 for 4 x 4 of 3 x 3 (3.7 at the points 1 and 2 of the paper), 1.1 for 2 x 2 and 4.4 for
// 4 x 4 of 5 x 5, and in one dimension 2 for 2 of 7, 4 for 4 of 7 and 1.3 for 4 of
// 3. V only separates code that
// is compiled for different instruction sets.
template <class V, int pairs>
struct WinogradPoints {
  static constexpr int max_powers = 8;

  constexpr WinogradPoints() {
    constexpr double chosen[4][4] = {
        {1}, {0.625, 1.5}, {0.5, 1.125, 2}, {0.4375, 0.8125, 1.25, 2.25}};
    static_assert(pairs >= 1 && pairs <= 4);
    for (int j = 0; j < pairs; ++j) {
      power[j][0] = 1;
      for (int i = 1; i < max_powers; ++i) {
        power[j][i] = power[j][i - 1] * chosen[pairs - 1][j];
      }
    }
    for (int left_out = 0; left_out <= pairs; ++left_out) {
      set_polynomial(left_out);
    }
    at_zero = polynomial[pairs][0];
    for (int j = 0; j < pairs; ++j) {
      at[j] = 2 * power[j][2];
      for (int i = 0; i < pairs; ++i) {
        at[j] *= i == j ? 1 : power[j][2] - power[i][2];
      }
    }
  }

  double power[pairs][max_powers] = {};  // of p
  // Coefficients of the product of (x - p^2) over all pairs but one, the constant first; in the
  // last row over all pairs.
  double polynomial[pairs + 1][pairs + 1] = {};
  double at_zero = 0, at[pairs] = {};  // values of the rows of B^T at their own points

 private:
  constexpr void set_polynomial(int left_out) {
    double(&of)[pairs + 1] = polynomial[left_out];
    of[0] = 1;
    for (int j = 0, degree = 0; j < pairs; ++j) {
      if (j == left_out) {
        continue;
      }
      ++degree;
      for (int i = degree; i >= 0; --i) {
        of[i] = (i > 0 ? of[i - 1] : 0) - power[j][2] * of[i];
      }
    }
  }
};

// Products of one line with the matrices, where points = tile + taps - 1:
//   input     B^T x, of `points` elements
//   output    A^T m, from `points` to `tile` elements
//   gradient  A dy, from `tile` to `points` elements
//   weights   G w, from `taps` to `points` elements
//   taps_of   G^T u, from `points` to `taps` elements
// The points are 0, p, -p, q, -q, ... and infinity, in this order. A row of B^T holds the
// coefficients of the polynomial that is zero at all other finite points; G divides by the
// polynomial's value at its own point. Since points come in pairs, both points of a pair share the
// sums of even and odd powers.
template <class V, int tile, int taps>
struct WinogradLines {
  using Float = typename V::Float;
  static constexpr int points = tile + taps - 1, pairs = (points - 2) / 2;
  static_assert(points % 2 == 0 && tile > 1 && taps > 1);

  [[gnu::always_inline]] static void input(const Float (&d)[points], Float (&to)[points]) {
    to[0] = sum_of_every_other<pairs>(d, at.polynomial[pairs]);
    to[points - 1] = sum_of_every_other<pairs>(d + 1, at.polynomial[pairs]);
#pragma GCC unroll 4
    for (int j = 0; j < pairs; ++j) {
      const Float even = sum_of_every_other<pairs - 1>(d + 2, at.polynomial[j]);
      const Float odd =
          times(at.power[j][1], sum_of_every_other<pairs - 1>(d + 1, at.polynomial[j]));
      store_pair(j, even, odd, to);
    }
  }

  [[gnu::always_inline]] static void output(const Float (&m)[points], Float (&to)[tile]) {
    to[0] = m[0];
#pragma GCC unroll 4
    for (int j = 0; j < pairs; ++j) {
      to[0] = to[0] + (m[2 * j + 1] + m[2 * j + 2]);
    }
    to_powers<1, tile>(m, Divided::no, to);
  }

  [[gnu::always_inline]] static void gradient(const Float (&dy)[tile], Float (&to)[points]) {
    from_powers<tile>(dy, Divided::no, to);
  }

  [[gnu::always_inline]] static void weights(const Float (&w)[taps], Float (&to)[points]) {
    from_powers<taps>(w, Divided::yes, to);
  }

  [[gnu::always_inline]] static void taps_of(const Float (&u)[points], Float (&to)[taps]) {
    to[0] = times(1 / at.at_zero, u[0]);
#pragma GCC unroll 4
    for (int j = pairs - 1; j >= 0; --j) {
      to[0] = plus_times(1 / at.at[j], u[2 * j + 1] + u[2 * j + 2], to[0]);
    }
    to_powers<1, taps>(u, Divided::yes, to);
  }

 private:
  using Coefficients = double[pairs + 1];
  enum class Divided : bool { no, yes };  // by the values of the polynomials

  static constexpr WinogradPoints<V, pairs> at{};
  static_assert(at.max_powers >= (tile > taps ? tile : taps));

  // The factors are constants: the compiler resolves the branches.
  [[gnu::always_inline]] static Float times(double factor, Float x) {
    return factor == 1 ? x : V::set(static_cast<float>(factor)) * x;
  }
  [[gnu::always_inline]] static Float plus_times(double factor, Float x, Float sum) {
    if (factor == 1) {
      return sum + x;
    }
    return factor == -1 ? sum - x : V::fma(V::set(static_cast<float>(factor)), x, sum);
  }

  // Returns d[0] c[0] + d[2] c[1] + ... + d[2 degree], whose coefficient is one.
  template <int degree>
  [[gnu::always_inline]] static Float sum_of_every_other(const Float* d, const Coefficients& c) {
    Float sum = d[std::int64_t{2} * degree];
#pragma GCC unroll 4
    for (std::int64_t i = degree - 1; i >= 0; --i) {
      sum = plus_times(c[i], d[2 * i], sum);
    }
    return sum;
  }

  [[gnu::always_inline]] static void store_pair(int j, Float even, Float odd, Float* to) {
    to[2 * j + 1] = even + odd;
    to[2 * j + 2] = even - odd;
  }

  // Evaluates the polynomial with coefficients x at all points.
  template <int count>
  [[gnu::always_inline]] static void from_powers(const Float (&x)[count], Divided divided,
                                                 Float (&to)[points]) {
    to[0] = divided == Divided::yes ? times(1 / at.at_zero, x[0]) : x[0];
    to[points - 1] = x[count - 1];
#pragma GCC unroll 4
    for (int j = 0; j < pairs; ++j) {
      const double by = divided == Divided::yes ? at.at[j] : 1;
      Float sums[2] = {times(1 / by, x[0]), times(at.power[j][1] / by, x[1])};
#pragma GCC unroll 8
      for (int i = 2; i < count; ++i) {
        sums[i % 2] = plus_times(at.power[j][i] / by, x[i], sums[i % 2]);
      }
      store_pair(j, sums[0], sums[1], to);
    }
  }

  // The transpose of from_powers: the sums of x times each power, from `first` on, of its points.
  template <int first, int count>
  [[gnu::always_inline]] static void to_powers(const Float (&x)[points], Divided divided,
                                               Float (&to)[count]) {
#pragma GCC unroll 8
    for (int i = first; i < count; ++i) {
      Float sum = x[points - 1];
#pragma GCC unroll 4
      for (int j = pairs - 1; j >= 0; --j) {
        const double factor = at.power[j][i] / (divided == Divided::yes ? at.at[j] : 1);
        const Float a = x[2 * j + 1], b = x[2 * j + 2];
        const Float both = i % 2 == 0 ? a + b : a - b;
        // Only the last power has a term at infinity.
        const bool begins = j == pairs - 1 && i < count - 1;
        sum = begins ? times(factor, both) : plus_times(factor, both, sum);
      }
      to[i] = sum;
    }
  }
};

// One output of one tap: the transforms are the identity.
template <class V>
struct WinogradLines<V, 1, 1> {
  using Float = typename V::Float;
  [[gnu::always_inline]] static void copy(const Float (&from)[1], Float (&to)[1]) {
    to[0] = from[0];
  }
  static constexpr auto input = copy, output = copy, gradient = copy, weights = copy,
                        taps_of = copy;
};

}  // namespace cnn::layers::cpu
