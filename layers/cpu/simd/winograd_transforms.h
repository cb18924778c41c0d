#pragma once

// The small transforms of Winograd's algorithm in vectors of channels, see winograd.h. Templates of
// the vector type V, as all loops.
namespace cnn::layers::cpu {

// The products of one line with the matrices, for tiles of tile x tile outputs:
//   input     B^T x, of tile + 2 elements
//   output    A^T m, from tile + 2 to tile elements
//   gradient  A dy, from tile to tile + 2 elements
//   weights   G w, from 3 to tile + 2 elements
//   taps      G^T u, from tile + 2 to 3 elements
template <class V, int tile>
struct WinogradLines;

// F(2x2, 3x3).
template <class V>
struct WinogradLines<V, 2> {
  using Float = typename V::Float;

  [[gnu::always_inline]] static void input(const Float (&d)[4], Float (&to)[4]) {
    to[0] = d[0] - d[2];
    to[1] = d[1] + d[2];
    to[2] = d[2] - d[1];
    to[3] = d[1] - d[3];
  }
  [[gnu::always_inline]] static void output(const Float (&m)[4], Float (&to)[2]) {
    to[0] = m[0] + m[1] + m[2];
    to[1] = m[1] - m[2] - m[3];
  }
  [[gnu::always_inline]] static void gradient(const Float (&dy)[2], Float (&to)[4]) {
    to[0] = dy[0];
    to[1] = dy[0] + dy[1];
    to[2] = dy[0] - dy[1];
    to[3] = V::zero() - dy[1];
  }
  [[gnu::always_inline]] static void weights(const Float (&w)[3], Float (&to)[4]) {
    const Float half = V::set(0.5F), ends = w[0] + w[2];
    to[0] = w[0];
    to[1] = half * (ends + w[1]);
    to[2] = half * (ends - w[1]);
    to[3] = w[2];
  }
  [[gnu::always_inline]] static void taps(const Float (&u)[4], Float (&to)[3]) {
    const Float half = V::set(0.5F), sum = half * (u[1] + u[2]);
    to[0] = u[0] + sum;
    to[1] = half * (u[1] - u[2]);
    to[2] = sum + u[3];
  }
};

// F(4x4, 3x3) at the points 0, p, -p, q, -q and infinity. A row of B^T holds the coefficients of
// the polynomial that is zero at all other finite points; G divides by its value at its own.
template <class V>
struct WinogradLines<V, 4> {
  using Float = typename V::Float;

  [[gnu::always_inline]] static void input(const Float (&d)[6], Float (&to)[6]) {
    const Float minus_pp = set(-pp), minus_qq = set(-qq), minus_sum = set(-(pp + qq));
    const Float product = set(pp * qq);
    const Float even_p = V::fma(minus_qq, d[2], d[4]);
    const Float odd_p = V::fma(minus_qq, d[1], d[3]) * set(p);
    const Float even_q = V::fma(minus_pp, d[2], d[4]);
    const Float odd_q = V::fma(minus_pp, d[1], d[3]) * set(q);
    to[0] = V::fma(product, d[0], V::fma(minus_sum, d[2], d[4]));
    to[1] = even_p + odd_p;
    to[2] = even_p - odd_p;
    to[3] = even_q + odd_q;
    to[4] = even_q - odd_q;
    to[5] = V::fma(product, d[1], V::fma(minus_sum, d[3], d[5]));
  }
  [[gnu::always_inline]] static void output(const Float (&m)[6], Float (&to)[4]) {
    const Float sum_p = m[1] + m[2], difference_p = m[1] - m[2];
    const Float sum_q = m[3] + m[4], difference_q = m[3] - m[4];
    to[0] = m[0] + sum_p + sum_q;
    to[1] = V::fma(set(p), difference_p, set(q) * difference_q);
    to[2] = V::fma(set(pp), sum_p, set(qq) * sum_q);
    to[3] = V::fma(set(p * pp), difference_p, V::fma(set(q * qq), difference_q, m[5]));
  }
  [[gnu::always_inline]] static void gradient(const Float (&dy)[4], Float (&to)[6]) {
    const Float even_p = V::fma(set(pp), dy[2], dy[0]);
    const Float odd_p = V::fma(set(p * pp), dy[3], set(p) * dy[1]);
    const Float even_q = V::fma(set(qq), dy[2], dy[0]);
    const Float odd_q = V::fma(set(q * qq), dy[3], set(q) * dy[1]);
    to[0] = dy[0];
    to[1] = even_p + odd_p;
    to[2] = even_p - odd_p;
    to[3] = even_q + odd_q;
    to[4] = even_q - odd_q;
    to[5] = dy[3];
  }
  [[gnu::always_inline]] static void weights(const Float (&w)[3], Float (&to)[6]) {
    const Float even_p = V::fma(set(pp / at_p), w[2], set(1 / at_p) * w[0]);
    const Float odd_p = set(p / at_p) * w[1];
    const Float even_q = V::fma(set(qq / at_q), w[2], set(1 / at_q) * w[0]);
    const Float odd_q = set(q / at_q) * w[1];
    to[0] = set(1 / at_0) * w[0];
    to[1] = even_p + odd_p;
    to[2] = even_p - odd_p;
    to[3] = even_q + odd_q;
    to[4] = even_q - odd_q;
    to[5] = w[2];
  }
  [[gnu::always_inline]] static void taps(const Float (&u)[6], Float (&to)[3]) {
    const Float sum_p = u[1] + u[2], difference_p = u[1] - u[2];
    const Float sum_q = u[3] + u[4], difference_q = u[3] - u[4];
    to[0] = V::fma(set(1 / at_p), sum_p, V::fma(set(1 / at_q), sum_q, set(1 / at_0) * u[0]));
    to[1] = V::fma(set(p / at_p), difference_p, set(q / at_q) * difference_q);
    to[2] = V::fma(set(pp / at_p), sum_p, V::fma(set(qq / at_q), sum_q, u[5]));
  }

 private:
  static constexpr double p = 0.625, q = 1.5, pp = p * p, qq = q * q;
  // The values of the polynomials at their own points.
  static constexpr double at_0 = pp * qq, at_p = 2 * pp * (pp - qq), at_q = 2 * qq * (qq - pp);

  [[gnu::always_inline]] static Float set(double value) {
    return V::set(static_cast<float>(value));
  }
};

template <class V, int tile>
struct WinogradTransforms {
  using Float = typename V::Float;
  using Lines = WinogradLines<V, tile>;
  static constexpr int window = tile + 2;

  // Each reads element i of a square by load(i) and gives element i of the result to store(i,
  // value). B^T x B.
  template <class Load, class Store>
  [[gnu::always_inline]] static void input(const Load& load, const Store& store) {
    both_ways<window, window>(Lines::input, load, store);
  }
  // A^T m A.
  template <class Load, class Store>
  [[gnu::always_inline]] static void output(const Load& load, const Store& store) {
    both_ways<window, tile>(Lines::output, load, store);
  }
  // A dy A^T.
  template <class Load, class Store>
  [[gnu::always_inline]] static void output_gradient(const Load& load, const Store& store) {
    both_ways<tile, window>(Lines::gradient, load, store);
  }
  // G w G^T.
  template <class Load, class Store>
  [[gnu::always_inline]] static void weights(const Load& load, const Store& store) {
    both_ways<3, window>(Lines::weights, load, store);
  }
  // G^T u G.
  template <class Load, class Store>
  [[gnu::always_inline]] static void weights_gradient(const Load& load, const Store& store) {
    both_ways<window, 3>(Lines::taps, load, store);
  }

 private:
  // All columns of a square of `from` x `from` elements, then all rows of what they became.
  template <int from, int to, class Load, class Store>
  [[gnu::always_inline]] static void both_ways(void (*line)(const Float (&)[from], Float (&)[to]),
                                               const Load& load, const Store& store) {
    Float columns[to][from];
#pragma GCC unroll 6
    for (int j = 0; j < from; ++j) {
      Float before[from], after[to];
#pragma GCC unroll 6
      for (int i = 0; i < from; ++i) {
        before[i] = load(i * from + j);
      }
      line(before, after);
#pragma GCC unroll 6
      for (int i = 0; i < to; ++i) {
        columns[i][j] = after[i];
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < to; ++i) {
      Float after[to];
      line(columns[i], after);
#pragma GCC unroll 6
      for (int j = 0; j < to; ++j) {
        store(i * to + j, after[j]);
      }
    }
  }
};

}  // namespace cnn::layers::cpu
