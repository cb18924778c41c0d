#include "layers/conv.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "layers/activation.h"
#include "layers/operands.h"

namespace cnn::layers {

namespace {

// One convolution: images x, outputs y, and for each filter the input channels that it reads.
struct Sizes {
  Dims x, y;
  Window window;
  bool depthwise = false;

  std::int64_t taps() const { return window.kernel_h * window.kernel_w; }
  std::int64_t channels_per_filter() const { return depthwise ? 1 : x.c; }
  double flops() const {
    return 2.0 * static_cast<double>(y.n * y.c * y.pixels()) *
           static_cast<double>(channels_per_filter() * taps());
  }
};

// The product of one weight w[o,c,i,j]: an output plane and an input plane, by the offset of their
// first element, and the weight's offset.
struct Tap {
  std::int64_t y = 0, x = 0, w = 0;
  std::int64_t i = 0, j = 0;
};

template <class Visit>
void for_each_tap(const Sizes& s, std::int64_t n, std::int64_t o, Visit visit) {
  const std::int64_t channels = s.channels_per_filter();
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::int64_t plane = n * s.x.c + (s.depthwise ? o : c);
    for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
      visit(Tap{.y = (n * s.y.c + o) * s.y.pixels(),
                .x = plane * s.x.pixels(),
                .w = (o * channels + c) * s.taps() + tap,
                .i = tap / s.window.kernel_w,
                .j = tap % s.window.kernel_w});
    }
  }
}

// Calls visit(y, x, count) for rows of pixels that a tap reads: y + k pairs with x + k * stride_w
// for k < count. y and x are offsets within their planes.
template <class Visit>
void for_each_row(const Sizes& s, const Tap& tap, Visit visit) {
  const Window& w = s.window;
  const Range rows = inside(s.y.h, s.x.h, w.stride_h, tap.i - w.pad_top);
  const Range columns = inside(s.y.w, s.x.w, w.stride_w, tap.j - w.pad_left);
  for (std::int64_t p = rows.begin; p < rows.end; ++p) {
    visit(p * s.y.w + columns.begin,
          (p * w.stride_h + tap.i - w.pad_top) * s.x.w + columns.begin * w.stride_w + tap.j -
              w.pad_left,
          columns.end - columns.begin);
  }
}

Sizes sizes(const ConvAttributes& a, const Shape& x, const Shape& y) {
  return {dims(x), dims(y), a.window, a.depthwise};
}

Shape output_shape(const ConvAttributes& a, const Shape& x, const Shape& w) {
  return {x[0], w[0], a.window.output_h(x[2]), a.window.output_w(x[3])};
}

bool weights_fit(const ConvAttributes& a, const Shape& x, const Shape& w) {
  const bool channels = a.depthwise ? w[1] == 1 && w[0] == x[1] : w[1] == x[1];
  return channels && w[2] == a.window.kernel_h && w[3] == a.window.kernel_w;
}

}  // namespace

std::vector<TensorDesc> Conv2d::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2u + (attributes.bias ? 1 : 0) + (attributes.residual ? 1 : 0));
  const Shape& x = in[0].shape;
  const Shape& w = in[1].shape;
  require(x.rank() == 4 && w.rank() == 4 && is_real(in[0].type), *this, in,
          "takes real images [N, C, H, W] and weights [O, C, kh, kw]");
  require(weights_fit(attributes, x, w), *this, in, "weights do not fit the images");
  const TensorDesc y = described(output_shape(attributes, x, w), in[0].type);
  require(y.shape[2] > 0 && y.shape[3] > 0, *this, in, "the window does not fit the image");
  if (attributes.bias) {
    require(in[2].shape == Shape{w[0]}, *this, in, "bias must be [O]");
  }
  if (attributes.residual) {
    require(in.back().shape == y.shape && in.back().type == y.type, *this, in,
            "the residual must be like the output");
  }
  return {y};
}

// Sums in double and rounds once: the reference is more exact than every kernel tested against it.
void Conv2d::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const Sizes s = sizes(attributes, in[0].desc.shape, out[0].desc.shape);
  const float* x = in[0].as<float>().data();
  const float* w = in[1].as<float>().data();
  const float* residual = attributes.residual ? in.back().as<float>().data() : nullptr;
  float* y = out[0].as<float>().data();
  std::vector<double> plane(static_cast<std::size_t>(s.y.pixels()));
  for (std::int64_t no = 0; no < s.y.n * s.y.c; ++no) {
    const std::int64_t o = no % s.y.c;
    plane.assign(plane.size(),
                 attributes.bias ? in[2].as<float>()[static_cast<std::size_t>(o)] : 0);
    for_each_tap(s, no / s.y.c, o, [&](const Tap& tap) {
      for_each_row(s, tap, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
        for (std::int64_t k = 0; k < count; ++k) {
          plane[static_cast<std::size_t>(to + k)] +=
              static_cast<double>(w[tap.w]) * x[tap.x + from + k * s.window.stride_w];
        }
      });
    });
    for (std::int64_t pixel = 0; pixel < s.y.pixels(); ++pixel) {
      const std::int64_t at = no * s.y.pixels() + pixel;
      const double sum =
          plane[static_cast<std::size_t>(pixel)] + (residual != nullptr ? residual[at] : 0);
      y[at] = static_cast<float>(attributes.relu && sum < 0 ? 0 : sum);
    }
  }
}

std::vector<std::optional<Value>> Conv2d::backward(const Backprop& b) const {
  const ConvAttributes plain_conv{.window = attributes.window, .depthwise = attributes.depthwise};
  const Value g = attributes.relu ? emit(ReluBackward(), {*b.grad[0], b.out[0]}) : *b.grad[0];
  std::vector<std::optional<Value>> result(b.in.size());
  // Weights first: forward tensors that only they need are freed before dx takes their bytes.
  if (b.wanted[1] || (attributes.bias && b.wanted[2])) {
    ConvAttributes with_bias = plain_conv;
    with_bias.bias = attributes.bias && b.wanted[2];
    const std::vector<Value> gradients = emit_all(
        Conv2dBackwardWeights(with_bias, b.in[1].desc().shape), std::vector<Value>{b.in[0], g});
    result[1] = gradients[0];
    if (with_bias.bias) {
      result[2] = gradients[1];
    }
  }
  if (b.wanted[0]) {
    result[0] = emit(Conv2dBackwardData(plain_conv, b.in[0].desc().shape), {g, b.in[1]});
  }
  if (attributes.residual) {
    result.back() = g;
  }
  return result;
}

double Conv2d::flops(std::span<const TensorDesc> in) const {
  const Shape& x = in[0].shape;
  return sizes(attributes, x, output_shape(attributes, x, in[1].shape)).flops();
}

std::vector<TensorDesc> Conv2dBackwardData::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2);
  require(in[0].shape.rank() == 4 && in[1].shape.rank() == 4 &&
              weights_fit(attributes, x_shape, in[1].shape) &&
              in[0].shape == output_shape(attributes, x_shape, in[1].shape),
          *this, in, "dy and weights do not fit images " + to_string(x_shape));
  return {described(x_shape, in[0].type)};
}

// dx[n,c,h,w] = sum over all o, i, j, p, q with p*sh+i-top = h, q*sw+j-left = w of w[o,c,i,j]
// dy[n,o,p,q]: the same pairs as in the forward pass, so the same loops.
void Conv2dBackwardData::reference(std::span<const TensorView> in,
                                   std::span<const TensorView> out) const {
  const Sizes s = sizes(attributes, x_shape, in[0].desc.shape);
  const float* dy = in[0].as<float>().data();
  const float* w = in[1].as<float>().data();
  const auto dx = out[0].as<float>();
  std::vector<double> sums(dx.size());
  for (std::int64_t no = 0; no < s.y.n * s.y.c; ++no) {
    for_each_tap(s, no / s.y.c, no % s.y.c, [&](const Tap& tap) {
      double* plane = sums.data() + tap.x;
      for_each_row(s, tap, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
        for (std::int64_t k = 0; k < count; ++k) {
          plane[to + k * s.window.stride_w] += static_cast<double>(w[tap.w]) * dy[tap.y + from + k];
        }
      });
    });
  }
  for (std::size_t i = 0; i < dx.size(); ++i) {
    dx[i] = static_cast<float>(sums[i]);
  }
}

double Conv2dBackwardData::flops(std::span<const TensorDesc> in) const {
  return sizes(attributes, x_shape, in[0].shape).flops();
}

std::vector<TensorDesc> Conv2dBackwardWeights::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2);
  require(in[0].shape.rank() == 4 && weights_fit(attributes, in[0].shape, w_shape) &&
              in[1].shape == output_shape(attributes, in[0].shape, w_shape),
          *this, in, "images and dy do not fit weights " + to_string(w_shape));
  std::vector<TensorDesc> result{described(w_shape, DataType::f32)};
  if (attributes.bias) {
    result.push_back(described({w_shape[0]}, DataType::f32));
  }
  return result;
}

// dw[o,c,i,j] = sum over n, p, q of dy[n,o,p,q] x[n,c,p*sh+i-top,q*sw+j-left]; dbias[o] = sum dy.
void Conv2dBackwardWeights::reference(std::span<const TensorView> in,
                                      std::span<const TensorView> out) const {
  const Sizes s = sizes(attributes, in[0].desc.shape, in[1].desc.shape);
  const float* x = in[0].as<float>().data();
  const float* dy = in[1].as<float>().data();
  const auto dw = out[0].as<float>();
  std::vector<double> sums(dw.size());
  std::vector<double> bias_sums(static_cast<std::size_t>(s.y.c));
  for (std::int64_t no = 0; no < s.y.n * s.y.c; ++no) {
    for_each_tap(s, no / s.y.c, no % s.y.c, [&](const Tap& tap) {
      double sum = 0;
      for_each_row(s, tap, [&](std::int64_t at_y, std::int64_t at_x, std::int64_t count) {
        for (std::int64_t k = 0; k < count; ++k) {
          sum +=
              static_cast<double>(dy[tap.y + at_y + k]) * x[tap.x + at_x + k * s.window.stride_w];
        }
      });
      sums[static_cast<std::size_t>(tap.w)] += sum;
    });
    for (std::int64_t pixel = 0; pixel < s.y.pixels(); ++pixel) {
      bias_sums[static_cast<std::size_t>(no % s.y.c)] += dy[no * s.y.pixels() + pixel];
    }
  }
  const auto round = [](double sum) { return static_cast<float>(sum); };
  std::ranges::transform(sums, dw.begin(), round);
  if (attributes.bias) {
    std::ranges::transform(bias_sums, out[1].as<float>().begin(), round);
  }
}

double Conv2dBackwardWeights::flops(std::span<const TensorDesc> in) const {
  return sizes(attributes, in[0].shape, in[1].shape).flops();
}

namespace {

// kernel: [O, I, kh, kw].
Initializer initializer_of(const ConvOptions& options, const Shape& kernel) {
  const auto taps = static_cast<double>(kernel[2] * kernel[3]);
  const auto inputs = static_cast<double>(kernel[1]);
  const auto outputs = static_cast<double>(kernel[0]);
  if (options.glorot) {
    return {Initializer::Kind::uniform, 0, std::sqrt(2 / (taps * (inputs + outputs)))};
  }
  // The divisor is the stddev of a unit normal cut at two: the draws then have variance 1 / fan_in.
  const double stddev =
      options.stddev.value_or(std::sqrt(1 / (taps * inputs)) / 0.87962566103423978);
  return {Initializer::Kind::truncated_normal, 0, stddev};
}

}  // namespace

Value conv(Value x, const ConvOptions& options) {
  Graph& graph = *x.graph;
  const std::string name =
      options.layer.empty() ? graph.unique_name("conv") : graph.scoped_name(options.layer);
  const Shape& image = x.desc().shape;
  require(image.rank() == 4, Conv2d({}), std::span(&x.desc(), 1), name + " takes images");
  const std::int64_t kernel_h = options.kernel_h > 0 ? options.kernel_h : options.kernel;
  const std::int64_t kernel_w = options.kernel_w > 0 ? options.kernel_w : options.kernel;
  const Window window{.kernel_h = kernel_h,
                      .kernel_w = kernel_w,
                      .stride_h = options.stride,
                      .stride_w = options.stride};
  const ConvAttributes attributes{
      .window = padded(window, options.padding, image[2], image[3], name),
      .depthwise = options.depthwise,
      .bias = options.bias};
  const std::int64_t filters = options.depthwise ? image[1] : options.filters;
  const std::int64_t channels = options.depthwise ? 1 : image[1];
  const Shape kernel{filters, channels, kernel_h, kernel_w};
  const Value weights =
      graph.parameter(name + "/" + std::string(options.weights), described(kernel, DataType::f32),
                      {.initializer = initializer_of(options, kernel),
                       .saved_as = options.depthwise ? SavedAs::hwoi : SavedAs::hwio});
  Value y;
  if (options.bias) {
    const Value biases =
        graph.parameter(name + "/biases", described({filters}, DataType::f32),
                        {.initializer = {Initializer::Kind::constant, options.bias_value, 0}});
    y = emit(Conv2d(attributes), {x, weights, biases});
  } else {
    y = emit(Conv2d(attributes), {x, weights});
  }
  return options.relu ? relu(y) : y;
}

}  // namespace cnn::layers
