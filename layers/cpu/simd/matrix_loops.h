#pragma once

#include <cstdint>
#include <type_traits>

#include "layers/cpu/simd/flat_loops.h"
#include "layers/cpu/simd/loops.h"

// Loops over matrices of pixels x channels, as templates of the vector type V and the element type
// T.
namespace cnn::layers::cpu {

// Four interleaved streams of rows: stream k has rows first + k apart, then every `stride` further,
// up to end + k apart. Only stream 0 exists if apart is zero.
struct Streams {
  std::int64_t first = 0, end = 0, stride = 1, apart = 0;
};

// Calls body(streams, column, lanes) for all rows of a matrix and each vector of its columns. Where
// a core reads several streams on separate pages faster than one, the streams of a large matrix are
// a quarter of it apart. With a single vector of columns, a body gets all rows at once and keeps
// the channel's values in registers; else it gets one row of each stream, so that reads follow
// memory order.
template <class V, class Body>
void each_tile(std::int64_t rows, std::int64_t columns, const Body& body) {
  constexpr std::int64_t large = 8192;  // elements
  const std::int64_t quarter = rows / 4;
  const bool spread = V::reads_apart && rows * columns >= large;
  const std::int64_t apart = spread ? quarter : 1;
  const std::int64_t stride = spread ? 1 : 4;
  const std::int64_t height = columns <= V::width ? quarter : 1;
  for (std::int64_t i = 0; i < quarter; i += height) {
    const Streams streams{i * stride, (i + height) * stride, stride, apart};
    each_vector<V>(columns, [&](std::int64_t column, auto lanes) { body(streams, column, lanes); });
  }
  for (std::int64_t row = quarter * 4; row < rows; ++row) {
    const Streams single{row, row + 1, 1, 0};
    each_vector<V>(columns, [&](std::int64_t column, auto lanes) { body(single, column, lanes); });
  }
}

// Calls step(row, stream) for the rows of a body of each_tile. Steps are inlined by attribute: five
// calls are more than the compiler inlines by itself, and a call for each vector takes longer than
// its work.
template <class Step>
[[gnu::always_inline]] inline void each_row(const Streams& streams, const Step& step) {
  if (streams.apart == 0) {
    step(streams.first, 0);
    return;
  }
  for (std::int64_t row = streams.first; row < streams.end; row += streams.stride) {
    step(row, 0);
    step(row + streams.apart, 1);
    step(row + 2 * streams.apart, 2);
    step(row + 3 * streams.apart, 3);
  }
}

// One sum per stream, so that additions do not depend on each other.
template <class V>
struct FourSums {
  typename V::Float parts[4] = {V::zero(), V::zero(), V::zero(), V::zero()};

  template <class Lanes>
  void add_to(float* total, Lanes lanes) const {
    const auto sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    V::store(total, V::load(total, lanes) + sum, lanes);
  }
};

template <class V, class T>
struct MatrixLoops {
  // Blocks are summed in f32 and their sums added in double: a block is short enough for f32
  // rounding, and long enough that its quarters lie on different pages.
  static std::int64_t block_rows(std::int64_t columns) {
    const std::int64_t rows = 8192 / columns;
    return rows < 128 ? 128 : rows > 512 ? 512 : rows;
  }

  static void column_sums(const void* from, std::int64_t rows, std::int64_t columns, float* sums) {
    const T* x = static_cast<const T*>(from);
    each_tile<V>(rows, columns, [&](const Streams& streams, std::int64_t c, auto lanes) {
      FourSums<V> sum;
      each_row(
          streams, [&](std::int64_t r, int k) __attribute__((always_inline)) {
            sum.parts[k] = sum.parts[k] + V::load(x + r * columns + c, lanes);
          });
      sum.add_to(sums + c, lanes);
    });
  }

  // sums[0..columns) += sum of (x - shift), sums[columns..2 columns) += sum of (x - shift)^2.
  static void shifted_sums(const T* x, std::int64_t rows, std::int64_t columns, const float* shift,
                           float* sums) {
    each_tile<V>(rows, columns, [&](const Streams& streams, std::int64_t c, auto lanes) {
      const auto centre = V::load(shift + c, lanes);
      FourSums<V> sum, squares;
      each_row(
          streams, [&](std::int64_t r, int k) __attribute__((always_inline)) {
            const auto distance = V::load(x + r * columns + c, lanes) - centre;
            sum.parts[k] = sum.parts[k] + distance;
            squares.parts[k] = V::fma(distance, distance, squares.parts[k]);
          });
      sum.add_to(sums + c, lanes);
      squares.add_to(sums + columns + c, lanes);
    });
  }

  // Joins blocks by the pairwise formula of T. Chan, G. Golub, R. LeVeque, "Updating formulae and a
  // pairwise algorithm for computing sample variances", 1979. Within a block, sums use the distance
  // to the mean of the previous blocks, in the first block to the mean of its first 16 rows. If
  // that mean is far from the block's own, cancellation is large within the block, but then those
  // rows alone make the variance so large that the lost digits do not matter.
  static void moments(const void* from, std::int64_t rows, std::int64_t columns, Moments& all) {
    const T* x = static_cast<const T*>(from);
    float* shift = all.scratch;
    float* sums = all.scratch + columns;
    const std::int64_t most = block_rows(columns);
    for (std::int64_t row = 0; row < rows; row += most) {
      const std::int64_t block = rows - row < most ? rows - row : most;
      const auto size = static_cast<double>(block);
      for (std::int64_t c = 0; c < columns; ++c) {
        shift[c] = static_cast<float>(all.mean[c]);
      }
      if (all.count == 0) {
        const std::int64_t sample = block < 16 ? block : 16;
        column_sums(x, sample, columns, shift);  // shift was zero
        const float each = 1.0F / static_cast<float>(sample);
        for (std::int64_t c = 0; c < columns; ++c) {
          shift[c] *= each;
        }
      }
      for (std::int64_t c = 0; c < 2 * columns; ++c) {
        sums[c] = 0;
      }
      shifted_sums(x + row * columns, block, columns, shift, sums);
      const double each = 1 / size;
      const double share = size / (all.count + size);
      const double between = all.count * share;
      all.count += size;
      for (std::int64_t c = 0; c < columns; ++c) {
        const auto sum = static_cast<double>(sums[c]);
        const double distance = static_cast<double>(shift[c]) + sum * each - all.mean[c];
        all.mean[c] += distance * share;
        all.squares[c] += static_cast<double>(sums[columns + c]) - sum * sum * each +
                          distance * distance * between;
      }
    }
  }

  // The largest value that is stored as zero.
  static constexpr float rounds_to_zero = sizeof(T) == 2 ? V::largest_zero_word : 0.0F;

  // The gate bits of one vector of columns.
  struct GateColumn {
    GateColumn(const GateBits& bits, std::int64_t c)
        : first(bits.data + c / 8 * bits.byte),
          row(bits.row),
          byte(bits.byte),
          bytes(bits.bytes - c / 8) {}
    unsigned load(std::int64_t r) const { return bits_at<V>(first + r * row, byte, bytes); }
    void store(std::int64_t r, unsigned bits) const {
      set_bits_at<V>(first + r * row, byte, bytes, bits);
    }
    std::uint8_t* first;
    std::int64_t row, byte, bytes;
  };

  template <bool with_residual, bool masked, class Store>
  static void normalise_rows(const NormaliseRows& rows, Store) {
    const T* x = static_cast<const T*>(rows.x);
    const T* residual = static_cast<const T*>(rows.residual);
    T* y = static_cast<T*>(rows.y);
    const std::int64_t columns = rows.columns;
    const auto bound = V::set(rows.relu ? 0 : -__builtin_inff());
    const auto upper = V::set(rows.limit);
    each_tile<V>(rows.rows, columns, [&](const Streams& streams, std::int64_t c, auto lanes) {
      const auto mean = V::load(rows.mean + c, lanes);
      const auto scale = V::load(rows.scale + c, lanes);
      const auto rest = V::load(rows.scale_rest + c, lanes);
      const auto shift = V::load(rows.shift + c, lanes);
      const GateColumn gate(rows.mask, c);
      each_row(
          streams, [&](std::int64_t r, int) __attribute__((always_inline)) {
            const std::int64_t at = r * columns + c;
            const auto distance = V::load(x + at, lanes) - mean;
            auto value = V::fma(distance, scale, V::fma(distance, rest, shift));
            if constexpr (with_residual) {
              value = value + V::load(residual + at, lanes);
            }
            if constexpr (masked) {
              gate.store(r, V::bits_above(value, V::set(rounds_to_zero)));
            }
            Store::store(y + at, V::min(upper, V::max(bound, value)), lanes);
          });
    });
  }

  static void normalise(const NormaliseRows& rows) {
    with_store<V, T>(rows.stream, rows.y, rows.columns, [&](auto store) {
      if (rows.mask.data != nullptr) {
        normalise_rows<true, true>(rows, store);
      } else if (rows.residual != nullptr) {
        normalise_rows<true, false>(rows, store);
      } else {
        normalise_rows<false, false>(rows, store);
      }
    });
  }

  // The per-channel part of a gate, applied to one vector. joined: adds two gradients.
  template <Gate kind, bool joined, class Lanes>
  struct Gated {
    Gated(const NormaliseGradientRows& rows, std::int64_t c, Lanes l)
        : mean(V::load(rows.mean + c, l)),
          scale(V::load(rows.scale + c, l)),
          rest(V::load(rows.scale_rest + c, l)),
          shift(V::load(rows.shift + c, l)),
          upper(V::set(rows.limit)),
          bits(rows.mask, c),
          column(c),
          lanes(l) {}
    // distance: x - mean.
    [[gnu::always_inline]] typename V::Float operator()(const NormaliseGradientRows& rows,
                                                        std::int64_t row,
                                                        typename V::Float distance) const {
      const std::int64_t at = row * rows.columns + column;
      auto dy = V::load(static_cast<const T*>(rows.dy) + at, lanes);
      if constexpr (joined) {
        dy = dy + V::load(static_cast<const T*>(rows.dy2) + at, lanes);
      }
      if constexpr (kind == Gate::recomputed || kind == Gate::recomputed_with_limit) {
        // The same expression as in normalise().
        const auto value = V::fma(distance, scale, V::fma(distance, rest, shift));
        const auto positive = V::gated(dy, value, V::set(rounds_to_zero));
        return kind == Gate::recomputed ? positive : V::gated(positive, upper, value);
      } else if constexpr (kind == Gate::output) {
        return V::gated(dy, V::load(static_cast<const T*>(rows.y) + at, lanes), V::zero());
      } else if constexpr (kind == Gate::mask) {
        return V::gated(dy, bits.load(row));
      } else {
        return dy;
      }
    }
    typename V::Float mean, scale, rest, shift, upper;
    GateColumn bits;
    std::int64_t column;
    Lanes lanes;
  };

  // Calls run(gate, joined) with both as std::integral_constant.
  template <class Run>
  static void with_gate(const NormaliseGradientRows& rows, const Run& run) {
    const auto with_kind = [&](auto kind) {
      if (rows.dy2 != nullptr) {
        run(kind, std::true_type{});
      } else {
        run(kind, std::false_type{});
      }
    };
    if (rows.gate == Gate::open) {
      with_kind(std::integral_constant<Gate, Gate::open>{});
    } else if (rows.gate == Gate::recomputed) {
      with_kind(std::integral_constant<Gate, Gate::recomputed>{});
    } else if (rows.gate == Gate::recomputed_with_limit) {
      with_kind(std::integral_constant<Gate, Gate::recomputed_with_limit>{});
    } else if (rows.gate == Gate::output) {
      with_kind(std::integral_constant<Gate, Gate::output>{});
    } else {
      with_kind(std::integral_constant<Gate, Gate::mask>{});
    }
  }

  static constexpr bool stores_gradient(Gate gate) {
    return gate == Gate::output || gate == Gate::mask;
  }

  template <Gate kind, bool joined, class Store>
  static void block_gradient_sums(const NormaliseGradientRows& normalise_gradient_rows,
                                  std::int64_t block, std::int64_t rows, float* sums, Store) {
    const std::int64_t columns = normalise_gradient_rows.columns;
    const T* x = static_cast<const T*>(normalise_gradient_rows.x);
    T* passed = static_cast<T*>(normalise_gradient_rows.g);
    each_tile<V>(rows, columns, [&](const Streams& streams, std::int64_t c, auto lanes) {
      const Gated<kind, joined, decltype(lanes)> gated(normalise_gradient_rows, c, lanes);
      FourSums<V> sum, products;
      each_row(
          streams, [&](std::int64_t r, int k) __attribute__((always_inline)) {
            const std::int64_t at = (block + r) * columns + c;
            const auto distance = V::load(x + at, lanes) - gated.mean;
            const auto g = gated(normalise_gradient_rows, block + r, distance);
            if constexpr (stores_gradient(kind)) {
              Store::store(passed + at, g, lanes);
            }
            sum.parts[k] = sum.parts[k] + g;
            products.parts[k] = V::fma(g, distance, products.parts[k]);
          });
      sum.add_to(sums + c, lanes);
      products.add_to(sums + columns + c, lanes);
    });
  }

  static void gradient_sums(const NormaliseGradientRows& rows, double* sums, float* scratch) {
    const std::int64_t most = block_rows(rows.columns);
    for (std::int64_t row = 0; row < rows.rows; row += most) {
      const std::int64_t block = rows.rows - row < most ? rows.rows - row : most;
      for (std::int64_t c = 0; c < 2 * rows.columns; ++c) {
        scratch[c] = 0;
      }
      with_gate(rows, [&](auto gate, auto joined) {
        if constexpr (stores_gradient(gate)) {
          with_store<V, T>(rows.stream, rows.g, rows.columns, [&](auto store) {
            block_gradient_sums<gate, joined>(rows, row, block, scratch, store);
          });
        } else {
          block_gradient_sums<gate, joined>(rows, row, block, scratch, Cached<V>{});
        }
      });
      for (std::int64_t c = 0; c < 2 * rows.columns; ++c) {
        sums[c] += static_cast<double>(scratch[c]);
      }
    }
  }

  template <Gate kind, bool joined, class Store>
  static void gradient_rows(const NormaliseGradientRows& rows, Store) {
    const std::int64_t columns = rows.columns;
    const T* x = static_cast<const T*>(rows.x);
    T* dx = static_cast<T*>(rows.dx);
    each_tile<V>(rows.rows, columns, [&](const Streams& streams, std::int64_t c, auto lanes) {
      const Gated<kind, joined, decltype(lanes)> gated(rows, c, lanes);
      const auto slope = V::load(rows.slope + c, lanes);
      const auto offset = V::load(rows.offset + c, lanes);
      each_row(
          streams, [&](std::int64_t r, int) __attribute__((always_inline)) {
            const std::int64_t at = r * columns + c;
            const auto distance = V::load(x + at, lanes) - gated.mean;
            const auto rest = V::fma(distance, slope, offset);
            const auto g = gated(rows, r, distance);
            Store::store(dx + at, V::fma(g, gated.scale, rest), lanes);
          });
    });
  }

  static void gradient(const NormaliseGradientRows& rows) {
    with_store<V, T>(rows.stream, rows.dx, rows.columns, [&](auto store) {
      with_gate(rows, [&](auto gate, auto joined) { gradient_rows<gate, joined>(rows, store); });
    });
  }

  static void repeat(const float* values, void* to, std::int64_t rows, std::int64_t columns) {
    T* y = static_cast<T*>(to);
    each_tile<V>(rows, columns, [&](const Streams& streams, std::int64_t c, auto lanes) {
      const auto value = V::load(values + c, lanes);
      each_row(
          streams, [&](std::int64_t r, int) __attribute__((always_inline)) {
            V::store(y + r * columns + c, value, lanes);
          });
    });
  }
};

}  // namespace cnn::layers::cpu
