#include "tests/support/cuda/dnn/loops.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/cuda/runtime/values.h"

namespace cnn::tests::emulated::dnn {
namespace {

using Sizes = std::array<std::int64_t, 4>;  // in the order N, C, H, W
using Values = std::vector<double>;         // in the order N, H, W, C

std::size_t place(const Sizes& s, std::int64_t n, std::int64_t h, std::int64_t w) {
  return static_cast<std::size_t>(((n * s[2] + h) * s[3] + w) * s[1]);
}

// Calls visit(index, at) for each pixel with the offsets of its first channel in Values and in
// memory.
template <class Visit>
void each_pixel(const Tensor& t, const Visit& visit) {
  std::size_t index = 0;
  for (std::int64_t n = 0; n < t.sizes[0]; ++n) {
    for (std::int64_t h = 0; h < t.sizes[2]; ++h) {
      for (std::int64_t w = 0; w < t.sizes[3]; ++w) {
        visit(index, n * t.strides[0] + h * t.strides[2] + w * t.strides[3]);
        index += static_cast<std::size_t>(t.sizes[1]);
      }
    }
  }
}

void load_values(const Tensor& t, const void* data, Values& values) {
  each_pixel(t, [&](std::size_t index, std::int64_t at) {
    load_row(t.type, data, at, t.strides[1],
             std::span(values).subspan(index, static_cast<std::size_t>(t.sizes[1])));
  });
}

// One filter tap at one output pixel, with the offsets of its rows of channels.
struct Tap {
  std::size_t x = 0, y = 0;          // offsets in x and y
  std::int64_t row = 0, column = 0;  // position in the filter
};

// Visits the filter taps that lie inside the image at one pixel of the output.
template <class Visit>
void each_tap_at(const Convolution& c, const Sizes& x, const Sizes& w,
                 const std::array<std::int64_t, 3>& pixel, const Visit& visit) {
  const auto [n, p, q] = pixel;
  for (std::int64_t i = 0; i < w[2]; ++i) {
    const std::int64_t h = p * c.strides[0] - c.before[0] + i;
    for (std::int64_t j = 0; h >= 0 && h < x[2] && j < w[3]; ++j) {
      const std::int64_t v = q * c.strides[1] - c.before[1] + j;
      if (v >= 0 && v < x[3]) {
        visit(place(x, n, h, v), i, j);
      }
    }
  }
}

template <class Visit>
void each_tap(const Convolution& c, const Sizes& x, const Sizes& w, const Sizes& y,
              const Visit& visit) {
  for (std::int64_t n = 0; n < y[0]; ++n) {
    for (std::int64_t p = 0; p < y[2]; ++p) {
      for (std::int64_t q = 0; q < y[3]; ++q) {
        const std::size_t to = place(y, n, p, q);
        each_tap_at(c, x, w, {n, p, q}, [&](std::size_t from, std::int64_t i, std::int64_t j) {
          visit(Tap{from, to, i, j});
        });
      }
    }
  }
}

// A filter [O, I, kh, kw] stored with one kind of channel innermost: [kh][kw][I][O] or
// [kh][kw][O][I].
class Filter {
 public:
  Filter(const Sizes& sizes, bool outputs_innermost)
      : sizes_(sizes),
        outputs_innermost_(outputs_innermost),
        values_(static_cast<std::size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3])) {}
  // Returns the row for one channel of the outer kind.
  double* row(const Tap& tap, std::int64_t channel) {
    const std::int64_t outer = outputs_innermost_ ? sizes_[1] : sizes_[0];
    const std::int64_t inner = outputs_innermost_ ? sizes_[0] : sizes_[1];
    const std::int64_t at = ((tap.row * sizes_[3] + tap.column) * outer + channel) * inner;
    return values_.data() + at;
  }
  void read(const Values& nhwc) {
    each(nhwc, [](double& mine, double other) { mine = other; });
  }
  void write(Values& nhwc) {
    each(nhwc, [](double mine, double& other) { other = mine; });
  }

 private:
  template <class List, class Copy>
  void each(List& nhwc, const Copy& copy) {
    for (std::int64_t o = 0; o < sizes_[0]; ++o) {
      for (std::int64_t i = 0; i < sizes_[2]; ++i) {
        for (std::int64_t j = 0; j < sizes_[3]; ++j) {
          for (std::int64_t c = 0; c < sizes_[1]; ++c) {
            const Tap tap{.row = i, .column = j};
            double* const mine = outputs_innermost_ ? row(tap, c) + o : row(tap, o) + c;
            copy(*mine, nhwc[place(sizes_, o, i, j) + static_cast<std::size_t>(c)]);
          }
        }
      }
    }
  }

  Sizes sizes_;
  bool outputs_innermost_;
  Values values_;
};

class Loops {
 public:
  Loops(const Graph& graph, const std::map<Id, void*>& addresses, bool tf32)
      : graph_(graph), addresses_(addresses), tf32_(tf32) {}

  void operator()(const Convolution& c) {
    const Sizes x = sizes(c.x), w = sizes(c.w), y = sizes(c.y);
    switch (c.computes) {
      case Convolution::Computes::y:
        return forward(c, x, w, y);
      case Convolution::Computes::x:
        return backward_data(c, x, w, y);
      case Convolution::Computes::w:
        return backward_weights(c, x, w, y);
    }
  }

  void operator()(const Pointwise& p) {
    const Values a = read(p.a);
    const Values b = p.b == 0 ? Values{} : read(p.b);
    Values out(a.size());
    const auto channels = static_cast<std::size_t>(sizes(p.a)[1]);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double other = b.empty() ? 0 : b[b.size() == a.size() ? i : i % channels];
      out[i] = value(p.mode, a[i], other);
    }
    write(p.out, std::move(out));
  }

  void operator()(const Statistics& s) {
    const Values x = read(s.x);
    const auto channels = static_cast<std::size_t>(sizes(s.x)[1]);
    Values sum(channels), squares(channels);
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum[i % channels] += x[i];
      squares[i % channels] += x[i] * x[i];
    }
    write(s.sum, std::move(sum));
    write(s.squares, std::move(squares));
  }

  void operator()(const NormBackward& n) {
    const Values x = read(n.x), dy = read(n.dy), mean = read(n.mean);
    const Values r = read(n.inverse_deviation), scale = read(n.scale);
    const std::size_t channels = mean.size();
    Values dscale(channels), dbias(channels), a(channels), b(channels), c(channels);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t k = i % channels;
      dbias[k] += dy[i];
      dscale[k] += dy[i] * (x[i] - mean[k]) * r[k];
    }
    const double count = static_cast<double>(x.size()) / static_cast<double>(channels);
    for (std::size_t k = 0; k < channels; ++k) {
      a[k] = scale[k] * r[k];
      b[k] = -a[k] * r[k] * dscale[k] / count;
      c[k] = -b[k] * mean[k] - a[k] * dbias[k] / count;
    }
    write(n.dscale, std::move(dscale));
    write(n.dbias, std::move(dbias));
    write(n.dy_factor, std::move(a));
    write(n.x_factor, std::move(b));
    write(n.constant, std::move(c));
  }

 private:
  static double value(cudnnPointwiseMode_t mode, double a, double b) {
    switch (mode) {
      case CUDNN_POINTWISE_ADD:
        return a + b;
      case CUDNN_POINTWISE_SUB:
        return a - b;
      case CUDNN_POINTWISE_MUL:
        return a * b;
      case CUDNN_POINTWISE_RELU_BWD:
        return b < 0 ? 0 : a;
      default:
        return a < 0 ? 0 : a;  // this form keeps NaN
    }
  }

  const Sizes& sizes(Id id) const { return graph_.tensors.at(id).sizes; }

  void forward(const Convolution& c, const Sizes& x, const Sizes& w, const Sizes& y) {
    const Values from = factor(c.x);
    Filter filter(w, /*outputs_innermost=*/true);
    filter.read(factor(c.w));
    Values out(static_cast<std::size_t>(graph_.tensors.at(c.y).elements()));
    const std::int64_t inputs = w[1], outputs = w[0] / (x[1] / w[1]);  // channels of one group
    each_tap(c, x, w, y, [&](const Tap& tap) {
      for (std::int64_t k = 0; k < x[1]; ++k) {
        const std::int64_t first = k / inputs * outputs;
        const double* const row = filter.row(tap, k % inputs) + first;
        double* const to = out.data() + tap.y + first;
        const double factor_x = from[tap.x + static_cast<std::size_t>(k)];
        for (std::int64_t o = 0; o < outputs; ++o) {
          to[o] += factor_x * row[o];
        }
      }
    });
    write(c.y, std::move(out));
  }

  void backward_data(const Convolution& c, const Sizes& x, const Sizes& w, const Sizes& y) {
    const Values from = factor(c.y);
    Filter filter(w, /*outputs_innermost=*/false);
    filter.read(factor(c.w));
    Values out(static_cast<std::size_t>(graph_.tensors.at(c.x).elements()));
    const std::int64_t inputs = w[1], outputs = w[0] / (x[1] / w[1]);
    each_tap(c, x, w, y, [&](const Tap& tap) {
      for (std::int64_t o = 0; o < y[1]; ++o) {
        const double* const row = filter.row(tap, o);
        double* const to = out.data() + tap.x + o / outputs * inputs;
        const double factor_y = from[tap.y + static_cast<std::size_t>(o)];
        for (std::int64_t k = 0; k < inputs; ++k) {
          to[k] += factor_y * row[k];
        }
      }
    });
    write(c.x, std::move(out));
  }

  void backward_weights(const Convolution& c, const Sizes& x, const Sizes& w, const Sizes& y) {
    const Values images = factor(c.x), gradients = factor(c.y);
    Filter filter(w, /*outputs_innermost=*/true);
    const std::int64_t inputs = w[1], outputs = w[0] / (x[1] / w[1]);
    each_tap(c, x, w, y, [&](const Tap& tap) {
      for (std::int64_t k = 0; k < x[1]; ++k) {
        const std::int64_t first = k / inputs * outputs;
        double* const row = filter.row(tap, k % inputs) + first;
        const double* const dy = gradients.data() + tap.y + first;
        const double factor_x = images[tap.x + static_cast<std::size_t>(k)];
        for (std::int64_t o = 0; o < outputs; ++o) {
          row[o] += factor_x * dy[o];
        }
      }
    });
    Values out(static_cast<std::size_t>(graph_.tensors.at(c.w).elements()));
    filter.write(out);
    write(c.w, std::move(out));
  }

  // Returns the values that an earlier operation made, or those in memory.
  const Values& read(Id id) {
    const auto [found, is_new] = values_.try_emplace(id);
    Values& values = found->second;
    if (is_new) {
      const Tensor& t = graph_.tensors.at(id);
      values.resize(static_cast<std::size_t>(t.elements()));
      load_values(t, addresses_.at(id), values);
    }
    return values;
  }

  // Returns the values as a tensor core reads them.
  Values factor(Id id) {
    Values values = read(id);
    if (tf32_ && graph_.tensors.at(id).type == DataType::f32) {
      std::ranges::transform(values, values.begin(),
                             [](double v) { return to_tf32(static_cast<float>(v)); });
    }
    return values;
  }

  void write(Id id, Values values) {
    const Tensor& t = graph_.tensors.at(id);
    if (t.is_virtual) {
      std::ranges::transform(values, values.begin(),
                             [](double v) { return static_cast<double>(static_cast<float>(v)); });
    } else {
      void* const data = addresses_.at(id);
      each_pixel(t, [&](std::size_t index, std::int64_t at) {
        for (std::int64_t c = 0; c < t.sizes[1]; ++c) {
          store(t.type, data, at + c * t.strides[1], static_cast<float>(values[index++]));
        }
      });
      load_values(t, data, values);  // with the rounding of the stored type
    }
    values_[id] = std::move(values);
  }

  const Graph& graph_;
  const std::map<Id, void*>& addresses_;
  bool tf32_;
  std::map<Id, Values> values_;
};

}  // namespace

void compute(const Graph& graph, const std::map<Id, void*>& addresses, bool tf32) {
  Loops loops(graph, addresses, tf32);
  for (const Operation& operation : graph.operations) {
    std::visit(loops, operation);
  }
}

}  // namespace cnn::tests::emulated::dnn
