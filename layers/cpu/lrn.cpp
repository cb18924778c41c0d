#include "layers/lrn.h"

#include <algorithm>
#include <cstdint>

#include "layers/cpu/lrn_parts.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "runtime/divide_up.h"

namespace cnn::layers::cpu {
namespace {

// Sums run across channels, so pixels are the vector lanes: a tile is all channels of some pixels
// of one image, as f32 [C][lanes], for every image layout.
constexpr std::int64_t lanes = lrn_lanes;
using Row = LrnRow;

// Maximum number of shares of the tiles, each with separate scratch memory.
constexpr std::int64_t max_shares = 64;

// One tile: image n, `count` pixels from `first`.
struct Tile {
  std::int64_t n, first, count;
};

template <class T>
void load(const TensorView& image, const Place& place, const Tile& tile, Row* rows) {
  const T* data = reinterpret_cast<const T*>(image.data);
  for (std::int64_t c = 0; c < image.desc.shape[1]; ++c) {
    rows[c] = {};
    for (std::int64_t i = 0; i < tile.count; ++i) {
      rows[c][static_cast<std::size_t>(i)] = widened(data[place(tile.n, c, tile.first + i)]);
    }
  }
}

// Also writes the zeros of a partial last block.
template <class T>
void store(const TensorView& image, const Place& place, const Tile& tile, const Row* rows) {
  T* data = reinterpret_cast<T*>(image.data);
  const std::int64_t channels = image.desc.shape[1];
  for (std::int64_t c = 0; c < place.stored_channels(); ++c) {
    for (std::int64_t i = 0; i < tile.count; ++i) {
      const float value = c < channels ? rows[c][static_cast<std::size_t>(i)] : 0;
      data[place(tile.n, c, tile.first + i)] = narrowed<T>(value);
    }
  }
}

class Window {
 public:
  Window(const LrnAttributes& a, std::int64_t channels)
      : radius_(a.radius),
        bias_(static_cast<float>(a.bias)),
        alpha_(static_cast<float>(a.alpha)),
        beta_(static_cast<float>(a.beta)),
        channels_(channels) {}

  // Computes y = x s^-beta.
  void forward(const Row* x, Row* y) const {
    for (std::int64_t c = 0; c < channels_; ++c) {
      const Row s = base(x, c);
      for (std::size_t i = 0; i < s.size(); ++i) {
        y[c][i] = x[c][i] * lrn_power(s[i], beta_);
      }
    }
  }

  // Computes t = dy x s^(-beta-1) for every channel; then dx from the sums of t. g receives dy
  // s^-beta.
  void backward(const Row* x, const Row* dy, Row* g, Row* t, Row* dx) const {
    for (std::int64_t c = 0; c < channels_; ++c) {
      const Row s = base(x, c);
      for (std::size_t i = 0; i < s.size(); ++i) {
        g[c][i] = dy[c][i] * lrn_power(s[i], beta_);
        t[c][i] = g[c][i] * x[c][i] / s[i];
      }
    }
    const float factor = 2 * alpha_ * beta_;
    for (std::int64_t c = 0; c < channels_; ++c) {
      const Row sum = summed(c, [t](std::int64_t d, std::size_t i) { return t[d][i]; });
      for (std::size_t i = 0; i < sum.size(); ++i) {
        dx[c][i] = g[c][i] - factor * x[c][i] * sum[i];
      }
    }
  }

 private:
  // Returns the sum over the neighbours of channel c.
  template <class Term>
  Row summed(std::int64_t c, Term term) const {
    Row sum{};
    const std::int64_t last = std::min(c + radius_, channels_ - 1);
    for (std::int64_t d = std::max<std::int64_t>(c - radius_, 0); d <= last; ++d) {
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += term(d, i);
      }
    }
    return sum;
  }

  Row base(const Row* x, std::int64_t c) const {
    Row s = summed(c, [x](std::int64_t d, std::size_t i) { return x[d][i] * x[d][i]; });
    for (float& value : s) {
      value = bias_ + alpha_ * value;
    }
    return s;
  }

  std::int64_t radius_;
  float bias_, alpha_, beta_;
  std::int64_t channels_;
};

std::int64_t tiles_per_image(const Shape& shape) { return divide_up(shape[2] * shape[3], lanes); }

std::int64_t shares_of(const Shape& shape) {
  return std::min(max_shares, shape[0] * tiles_per_image(shape));
}

// Calls visit(tile, scratch) for all tiles, on all threads; scratch: `rows` rows of this share.
template <class Visit>
void each_tile(const Operands& operands, std::int64_t rows, const Visit& visit) {
  const Shape& shape = operands.out[0].desc.shape;
  const std::int64_t pixels = shape[2] * shape[3], per_image = tiles_per_image(shape);
  const std::int64_t tiles = shape[0] * per_image, shares = shares_of(shape);
  Row* scratch = BumpAllocator(operands.workspace).take<Row>(shares * rows);
  parallel_for(shares, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t share = first; share < last; ++share) {
      for (std::int64_t i = tiles * share / shares; i < tiles * (share + 1) / shares; ++i) {
        const std::int64_t pixel = i % per_image * lanes;
        visit(Tile{i / per_image, pixel, std::min(lanes, pixels - pixel)}, scratch + share * rows);
      }
    }
  });
}

template <class T>
void run_forward(const LrnAttributes& a, const Operands& operands) {
  const Place place(operands.in[0].desc);
  const std::int64_t channels = operands.in[0].desc.shape[1];
  const Window window(a, channels);
  each_tile(operands, 2 * channels, [&](const Tile& tile, Row* scratch) {
    load<T>(operands.in[0], place, tile, scratch);
    window.forward(scratch, scratch + channels);
    store<T>(operands.out[0], place, tile, scratch + channels);
  });
}

template <class T>
void run_backward(const LrnAttributes& a, const Operands& operands) {
  const Place place(operands.in[0].desc);
  const std::int64_t c = operands.in[0].desc.shape[1];
  const Window window(a, c);
  each_tile(operands, 5 * c, [&](const Tile& tile, Row* scratch) {
    load<T>(operands.in[0], place, tile, scratch);
    load<T>(operands.in[1], place, tile, scratch + c);
    window.backward(scratch, scratch + c, scratch + 2 * c, scratch + 3 * c, scratch + 4 * c);
    store<T>(operands.out[0], place, tile, scratch + 4 * c);
  });
}

// Gives all images the first one's layout: all layouts are equally fast.
std::optional<KernelSpec> describe(const Signature& request, std::int64_t rows_per_channel) {
  const TensorDesc& x = request.in[0];
  if (!is_vectorised(x.type) || x.layout == Layout::packed) {
    return std::nullopt;
  }
  BumpAllocator allocator;
  allocator.take<Row>(shares_of(x.shape) * rows_per_channel * x.shape[1]);
  return in_layout(request, x.layout, allocator.bytes());
}

}  // namespace

void add_lrn_rows(KernelTable& table) {
  table.add<Lrn>([](const Lrn& /*op*/, const Signature& request) { return describe(request, 2); },
                 [](const Lrn& op, const Signature& s) {
                   const bool f32 = s.in[0].type == DataType::f32;
                   return own_kernel([a = op.attributes, f32](const Operands& operands) {
                     f32 ? run_forward<float>(a, operands) : run_forward<BFloat16>(a, operands);
                   });
                 });
  table.add<LrnBackward>(
      [](const LrnBackward& /*op*/, const Signature& request) { return describe(request, 5); },
      [](const LrnBackward& op, const Signature& s) {
        const bool f32 = s.in[0].type == DataType::f32;
        return own_kernel([a = op.attributes, f32](const Operands& operands) {
          f32 ? run_backward<float>(a, operands) : run_backward<BFloat16>(a, operands);
        });
      });
}

}  // namespace cnn::layers::cpu
