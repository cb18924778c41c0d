#include "layers/pool.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "layers/operands.h"
#include "runtime/error.h"

namespace cnn::layers {

namespace {

Shape output_shape(const Window& w, const Shape& x) {
  return {x[0], x[1], w.output_h(x[2]), w.output_w(x[3])};
}

// The pixels of one plane [height, width] that the window of output (p, q) covers.
struct CoveredPixels {
  Range rows, columns;
  std::int64_t count() const { return (rows.end - rows.begin) * (columns.end - columns.begin); }
};

CoveredPixels covered_pixels(const Window& w, const Dims& x, std::int64_t p, std::int64_t q) {
  const std::int64_t top = p * w.stride_h - w.pad_top;
  const std::int64_t left = q * w.stride_w - w.pad_left;
  return {{std::max<std::int64_t>(top, 0), std::min(top + w.kernel_h, x.h)},
          {std::max<std::int64_t>(left, 0), std::min(left + w.kernel_w, x.w)}};
}

// Calls visit(index of the output element, index of its input plane's first element, p, q).
template <class Visit>
void for_each_output(const Dims& x, const Dims& y, Visit visit) {
  for (std::int64_t i = 0; i < y.n * y.c * y.pixels(); ++i) {
    const std::int64_t pixel = i % y.pixels();
    visit(i, i / y.pixels() * x.pixels(), pixel / y.w, pixel % y.w);
  }
}

// Returns whether a value replaces the largest so far. The first NaN is larger than all numbers, so
// that it stays.
bool beats(float value, float best) { return !(value <= best) && !std::isnan(best); }

void require_window(const Op& op, std::span<const TensorDesc> in, const Window& w) {
  require_count(op, in, 1);
  require(in[0].shape.rank() == 4 && is_real(in[0].type), op, in, "takes real images");
  const Shape y = output_shape(w, in[0].shape);
  require(y[2] > 0 && y[3] > 0, op, in, "the window does not fit the image");
}

// kind: of the layer, for its name in errors.
Window pool_window(Value x, const PoolOptions& options, std::string_view kind) {
  const std::string name = x.graph->unique_name(kind);
  const Shape& image = x.desc().shape;
  const Window window{.kernel_h = options.kernel,
                      .kernel_w = options.kernel,
                      .stride_h = options.stride,
                      .stride_w = options.stride};
  return padded(window, options.padding, image[2], image[3], name);
}

}  // namespace

std::vector<TensorDesc> MaxPool::infer(std::span<const TensorDesc> in) const {
  require_window(*this, in, window);
  require(!indices || window.kernel_h * window.kernel_w <= 256, *this, in,
          "a window with indices has at most 256 pixels");
  const Shape y = output_shape(window, in[0].shape);
  std::vector<TensorDesc> result{described(y, in[0].type)};
  if (indices) {
    result.push_back(described(y, DataType::u8));
  }
  return result;
}

void MaxPool::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const Dims x = dims(in[0].desc.shape);
  const float* from = in[0].as<float>().data();
  float* y = out[0].as<float>().data();
  for_each_output(x, dims(out[0].desc.shape),
                  [&](std::int64_t i, std::int64_t plane, std::int64_t p, std::int64_t q) {
                    const CoveredPixels c = covered_pixels(window, x, p, q);
                    std::int64_t best = plane + c.rows.begin * x.w + c.columns.begin;
                    for (std::int64_t h = c.rows.begin; h < c.rows.end; ++h) {
                      for (std::int64_t w = c.columns.begin; w < c.columns.end; ++w) {
                        const std::int64_t at = plane + h * x.w + w;
                        best = beats(from[at], from[best]) ? at : best;
                      }
                    }
                    y[i] = from[best];
                    if (indices) {
                      const std::int64_t row =
                          (best - plane) / x.w - (p * window.stride_h - window.pad_top);
                      const std::int64_t column =
                          (best - plane) % x.w - (q * window.stride_w - window.pad_left);
                      out[1].as<std::uint8_t>()[static_cast<std::size_t>(i)] =
                          static_cast<std::uint8_t>(row * window.kernel_w + column);
                    }
                  });
}

std::vector<std::optional<Value>> MaxPool::backward(const Backprop& b) const {
  check(indices, "max_pool: only a pool that keeps indices has a gradient");
  return {emit(MaxPoolBackward(window, b.in[0].desc().shape), {*b.grad[0], b.out[1]})};
}

std::vector<TensorDesc> MaxPoolBackward::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2);
  require(in[0].shape == output_shape(window, x_shape) && in[1].shape == in[0].shape &&
              in[1].type == DataType::u8,
          *this, in, "takes dy and u8 indices of pools of " + to_string(x_shape));
  return {described(x_shape, in[0].type)};
}

void MaxPoolBackward::reference(std::span<const TensorView> in,
                                std::span<const TensorView> out) const {
  const Dims x = dims(x_shape);
  const float* dy = in[0].as<float>().data();
  const auto index = in[1].as<std::uint8_t>();
  float* dx = out[0].as<float>().data();
  std::ranges::fill(out[0].as<float>(), 0.0F);
  for_each_output(
      x, dims(in[0].desc.shape),
      [&](std::int64_t i, std::int64_t plane, std::int64_t p, std::int64_t q) {
        const std::int64_t tap = index[static_cast<std::size_t>(i)];
        const std::int64_t h = p * window.stride_h - window.pad_top + tap / window.kernel_w;
        const std::int64_t w = q * window.stride_w - window.pad_left + tap % window.kernel_w;
        dx[plane + h * x.w + w] += dy[i];
      });
}

std::vector<TensorDesc> AveragePool::infer(std::span<const TensorDesc> in) const {
  require_window(*this, in, window);
  return {described(output_shape(window, in[0].shape), in[0].type)};
}

void AveragePool::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const Dims x = dims(in[0].desc.shape);
  const float* from = in[0].as<float>().data();
  float* y = out[0].as<float>().data();
  for_each_output(x, dims(out[0].desc.shape),
                  [&](std::int64_t i, std::int64_t plane, std::int64_t p, std::int64_t q) {
                    const CoveredPixels c = covered_pixels(window, x, p, q);
                    double sum = 0;
                    for (std::int64_t h = c.rows.begin; h < c.rows.end; ++h) {
                      for (std::int64_t w = c.columns.begin; w < c.columns.end; ++w) {
                        sum += from[plane + h * x.w + w];
                      }
                    }
                    y[i] = static_cast<float>(sum / static_cast<double>(c.count()));
                  });
}

std::vector<std::optional<Value>> AveragePool::backward(const Backprop& b) const {
  return {emit(AveragePoolBackward(window, b.in[0].desc().shape), {*b.grad[0]})};
}

std::vector<TensorDesc> AveragePoolBackward::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(in[0].shape == output_shape(window, x_shape), *this, in,
          "takes dy of pools of " + to_string(x_shape));
  return {described(x_shape, in[0].type)};
}

void AveragePoolBackward::reference(std::span<const TensorView> in,
                                    std::span<const TensorView> out) const {
  const Dims x = dims(x_shape);
  const float* dy = in[0].as<float>().data();
  float* dx = out[0].as<float>().data();
  std::ranges::fill(out[0].as<float>(), 0.0F);
  for_each_output(x, dims(in[0].desc.shape),
                  [&](std::int64_t i, std::int64_t plane, std::int64_t p, std::int64_t q) {
                    const CoveredPixels c = covered_pixels(window, x, p, q);
                    const float share = dy[i] / static_cast<float>(c.count());
                    for (std::int64_t h = c.rows.begin; h < c.rows.end; ++h) {
                      for (std::int64_t w = c.columns.begin; w < c.columns.end; ++w) {
                        dx[plane + h * x.w + w] += share;
                      }
                    }
                  });
}

std::vector<TensorDesc> SpatialMean::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(in[0].shape.rank() == 4 && is_real(in[0].type), *this, in, "takes real images");
  return {described({in[0].shape[0], in[0].shape[1]}, in[0].type)};
}

void SpatialMean::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const auto pixels = static_cast<std::size_t>(dims(in[0].desc.shape).pixels());
  const auto x = in[0].as<float>();
  const auto y = out[0].as<float>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    double sum = 0;
    for (const float value : x.subspan(i * pixels, pixels)) {
      sum += value;
    }
    y[i] = static_cast<float>(sum / static_cast<double>(pixels));
  }
}

std::vector<std::optional<Value>> SpatialMean::backward(const Backprop& b) const {
  return {emit(SpatialMeanBackward(b.in[0].desc().shape), {*b.grad[0]})};
}

std::vector<TensorDesc> SpatialMeanBackward::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(in[0].shape == Shape{x_shape[0], x_shape[1]}, *this, in,
          "takes dy of the means of " + to_string(x_shape));
  return {described(x_shape, in[0].type)};
}

void SpatialMeanBackward::reference(std::span<const TensorView> in,
                                    std::span<const TensorView> out) const {
  const auto pixels = static_cast<std::size_t>(dims(x_shape).pixels());
  const auto dy = in[0].as<float>();
  const auto dx = out[0].as<float>();
  for (std::size_t i = 0; i < dx.size(); ++i) {
    dx[i] = dy[i / pixels] / static_cast<float>(pixels);
  }
}

Value max_pool(Value x, const PoolOptions& options) {
  const Window window = pool_window(x, options, "max_pool");
  return emit(MaxPool(window, x.graph->traits().training), {x});
}

Value average_pool(Value x, const PoolOptions& options) {
  return emit(AveragePool(pool_window(x, options, "average_pool")), {x});
}

Value spatial_mean(Value x) { return emit(SpatialMean(), {x}); }

}  // namespace cnn::layers
