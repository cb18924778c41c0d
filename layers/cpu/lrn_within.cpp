#include <algorithm>
#include <cstdint>

#include "layers/cpu/lrn_parts.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "layers/lrn.h"
#include "runtime/divide_up.h"

// Channels are the vector lanes: 16 at a time pass through an image row by row. Only the rows that
// a window covers are kept, as f32, for every image layout.
namespace cnn::layers::cpu {

namespace {

// Maximum number of shares of the channel groups, each with separate scratch memory.
constexpr std::int64_t max_shares_within = 64;

struct WithinSizes {
  std::int64_t images, channels, height, width;
  std::int64_t kept;  // number of rows: the window's height
  std::int64_t groups, shares;

  WithinSizes(const LrnAttributes& a, const Shape& shape)
      : images(shape[0]),
        channels(shape[1]),
        height(shape[2]),
        width(shape[3]),
        kept(2 * a.radius + 1),
        groups(divide_up(channels, lrn_lanes)),
        shares(std::min(max_shares_within, images * groups)) {}
};

// The last rows of an image, by row number.
class KeptRows {
 public:
  KeptRows(LrnRow* data, const WithinSizes& sizes)
      : data_(data), kept_(sizes.kept), width_(sizes.width) {}
  LrnRow* operator[](std::int64_t row) const { return data_ + row % kept_ * width_; }

 private:
  LrnRow* data_;
  std::int64_t kept_, width_;
};

// Some channels of one image.
struct ChannelGroup {
  std::int64_t n, first, count;
};

template <class T>
void load_row(const TensorView& image, const Place& place, const ChannelGroup& group,
              std::int64_t row, LrnRow* to) {
  const T* data = reinterpret_cast<const T*>(image.data);
  const std::int64_t width = image.desc.shape[3];
  for (std::int64_t w = 0; w < width; ++w) {
    to[w] = {};
    for (std::int64_t i = 0; i < group.count; ++i) {
      to[w][static_cast<std::size_t>(i)] =
          widened(data[place(group.n, group.first + i, row * width + w)]);
    }
  }
}

// Also writes the zeros of a partial last block of channels.
template <class T>
void store_row(const TensorView& image, const Place& place, const ChannelGroup& group,
               std::int64_t row, const LrnRow* from) {
  T* data = reinterpret_cast<T*>(image.data);
  const std::int64_t width = image.desc.shape[3];
  const std::int64_t stored = std::min(lrn_lanes, place.stored_channels() - group.first);
  for (std::int64_t w = 0; w < width; ++w) {
    for (std::int64_t i = 0; i < stored; ++i) {
      const float value = i < group.count ? from[w][static_cast<std::size_t>(i)] : 0;
      data[place(group.n, group.first + i, row * width + w)] = narrowed<T>(value);
    }
  }
}

class WindowOfPixels {
 public:
  WindowOfPixels(const LrnAttributes& a, const WithinSizes& sizes)
      : radius_(a.radius),
        height_(sizes.height),
        width_(sizes.width),
        bias_(static_cast<float>(a.bias)),
        alpha_(static_cast<float>(a.alpha)),
        beta_(static_cast<float>(a.beta)) {}

  // Computes row `row` of y = x s^-beta.
  void forward(const KeptRows& x, std::int64_t row, LrnRow* y) const {
    for (std::int64_t w = 0; w < width_; ++w) {
      const LrnRow s = base(x, row, w);
      for (std::size_t i = 0; i < s.size(); ++i) {
        y[w][i] = x[row][w][i] * lrn_power(s[i], beta_);
      }
    }
  }

  // Computes row `row` of g = dy s^-beta and t = dy x s^(-beta-1).
  void terms(const KeptRows& x, std::int64_t row, const LrnRow* dy, LrnRow* g, LrnRow* t) const {
    for (std::int64_t w = 0; w < width_; ++w) {
      const LrnRow s = base(x, row, w);
      for (std::size_t i = 0; i < s.size(); ++i) {
        g[w][i] = dy[w][i] * lrn_power(s[i], beta_);
        t[w][i] = g[w][i] * x[row][w][i] / s[i];
      }
    }
  }

  // Computes row `row` of dx from x, g and t.
  void backward(const KeptRows& x, const KeptRows& g, const KeptRows& t, std::int64_t row,
                LrnRow* dx) const {
    const float factor = 2 * alpha_ * beta_;
    for (std::int64_t w = 0; w < width_; ++w) {
      const LrnRow sum = summed(t, row, w, [](float value) { return value; });
      for (std::size_t i = 0; i < sum.size(); ++i) {
        dx[w][i] = g[row][w][i] - factor * x[row][w][i] * sum[i];
      }
    }
  }

 private:
  template <class Term>
  LrnRow summed(const KeptRows& rows, std::int64_t row, std::int64_t column, Term term) const {
    LrnRow sum{};
    const std::int64_t bottom = std::min(row + radius_, height_ - 1);
    const std::int64_t left = std::max<std::int64_t>(column - radius_, 0);
    const std::int64_t right = std::min(column + radius_, width_ - 1);
    for (std::int64_t h = std::max<std::int64_t>(row - radius_, 0); h <= bottom; ++h) {
      for (std::int64_t w = left; w <= right; ++w) {
        for (std::size_t i = 0; i < sum.size(); ++i) {
          sum[i] += term(rows[h][w][i]);
        }
      }
    }
    return sum;
  }

  LrnRow base(const KeptRows& x, std::int64_t row, std::int64_t column) const {
    LrnRow s = summed(x, row, column, [](float value) { return value * value; });
    for (float& value : s) {
      value = bias_ + alpha_ * value;
    }
    return s;
  }

  std::int64_t radius_, height_, width_;
  float bias_, alpha_, beta_;
};

// Calls visit(group, scratch) for all groups of all images, on all threads; scratch: `rows` rows of
// pixels of this share.
template <class Visit>
void each_group(const WithinSizes& sizes, LrnRow* scratch, std::int64_t rows, const Visit& visit) {
  const std::int64_t total = sizes.images * sizes.groups;
  parallel_for(sizes.shares, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t share = first; share < last; ++share) {
      for (std::int64_t i = total * share / sizes.shares; i < total * (share + 1) / sizes.shares;
           ++i) {
        const std::int64_t channel = i % sizes.groups * lrn_lanes;
        visit(
            ChannelGroup{i / sizes.groups, channel, std::min(lrn_lanes, sizes.channels - channel)},
            scratch + share * rows * sizes.width);
      }
    }
  });
}

std::int64_t rows_forward(const WithinSizes& sizes) { return sizes.kept + 1; }       // x, y
std::int64_t rows_backward(const WithinSizes& sizes) { return 3 * sizes.kept + 1; }  // x, g, t, dy

LrnRow* scratch_of(const WithinSizes& sizes, std::int64_t rows, BumpAllocator& allocator) {
  return allocator.take<LrnRow>(sizes.shares * rows * sizes.width);
}

template <class T>
void run_within(const LrnAttributes& a, const Operands& operands) {
  const TensorView &x = operands.in[0], &y = operands.out[0];
  const Place place(x.desc);
  const WithinSizes sizes(a, x.desc.shape);
  const WindowOfPixels window(a, sizes);
  BumpAllocator allocator(operands.workspace);
  LrnRow* const scratch = scratch_of(sizes, rows_forward(sizes), allocator);
  each_group(sizes, scratch, rows_forward(sizes), [&](const ChannelGroup& group, LrnRow* rows) {
    const KeptRows kept(rows, sizes);
    LrnRow* const result = rows + sizes.kept * sizes.width;
    for (std::int64_t row = 0; row < sizes.height + a.radius; ++row) {
      if (row < sizes.height) {
        load_row<T>(x, place, group, row, kept[row]);
      }
      if (row >= a.radius) {
        window.forward(kept, row - a.radius, result);
        store_row<T>(y, place, group, row - a.radius, result);
      }
    }
  });
}

// Loads rows of x first; their terms follow one radius behind, dx one more radius behind.
template <class T>
void run_within_backward(const LrnAttributes& a, const Operands& operands) {
  const TensorView &x = operands.in[0], &dy = operands.in[1], &dx = operands.out[0];
  const Place place(x.desc);
  const WithinSizes sizes(a, x.desc.shape);
  const WindowOfPixels window(a, sizes);
  BumpAllocator allocator(operands.workspace);
  LrnRow* const scratch = scratch_of(sizes, rows_backward(sizes), allocator);
  each_group(sizes, scratch, rows_backward(sizes), [&](const ChannelGroup& group, LrnRow* rows) {
    const std::int64_t ring = sizes.kept * sizes.width;
    const KeptRows kept(rows, sizes), g(rows + ring, sizes), t(rows + 2 * ring, sizes);
    LrnRow* const line = rows + 3 * ring;
    for (std::int64_t row = 0; row < sizes.height + 2 * a.radius; ++row) {
      if (row < sizes.height) {
        load_row<T>(x, place, group, row, kept[row]);
      }
      const std::int64_t middle = row - a.radius, last = middle - a.radius;
      if (middle >= 0 && middle < sizes.height) {
        load_row<T>(dy, place, group, middle, line);
        window.terms(kept, middle, line, g[middle], t[middle]);
      }
      if (last >= 0) {
        window.backward(kept, g, t, last, line);
        store_row<T>(dx, place, group, last, line);
      }
    }
  });
}

// Gives all images the first one's layout: all layouts are equally fast.
std::optional<KernelSpec> describe_within(const LrnAttributes& a, const Signature& request,
                                          std::int64_t (*rows)(const WithinSizes&)) {
  const TensorDesc& x = request.in[0];
  if (!is_vectorised(x.type) || x.layout == Layout::packed) {
    return std::nullopt;
  }
  const WithinSizes sizes(a, x.shape);
  BumpAllocator allocator;
  scratch_of(sizes, rows(sizes), allocator);
  return in_layout(request, x.layout, allocator.bytes());
}

}  // namespace

void add_lrn_within_rows(KernelTable& table) {
  table.add<WithinLrn>(
      [](const WithinLrn& op, const Signature& request) {
        return describe_within(op.attributes, request, rows_forward);
      },
      [](const WithinLrn& op, const Signature& s) {
        const bool f32 = s.in[0].type == DataType::f32;
        return own_kernel([a = op.attributes, f32](const Operands& operands) {
          f32 ? run_within<float>(a, operands) : run_within<BFloat16>(a, operands);
        });
      });
  table.add<WithinLrnBackward>(
      [](const WithinLrnBackward& op, const Signature& request) {
        return describe_within(op.attributes, request, rows_backward);
      },
      [](const WithinLrnBackward& op, const Signature& s) {
        const bool f32 = s.in[0].type == DataType::f32;
        return own_kernel([a = op.attributes, f32](const Operands& operands) {
          f32 ? run_within_backward<float>(a, operands)
              : run_within_backward<BFloat16>(a, operands);
        });
      });
}

}  // namespace cnn::layers::cpu
