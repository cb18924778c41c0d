#include <cstdint>

#include "layers/cuda/flat.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/cuda/vector.cuh"
#include "layers/lrn.h"

// Local response normalisation within channels. One thread per element, with neighbouring threads
// on neighbouring channels, so that accesses are coalesced. Every operand is moved once, and the
// gradient's terms are written and read as f32; overlapping windows are served by the caches.
namespace cnn::layers::cuda {

namespace {

// The geometry and the coefficients of the op as kernel parameters.
struct WithinSizes {
  std::int64_t elements = 0;
  int channels = 0, height = 0, width = 0;
  int radius = 0;
  float bias = 0, alpha = 0, beta = 0;

  WithinSizes(const LrnAttributes& a, const TensorDesc& x)
      : elements(x.shape.elements()),
        channels(static_cast<int>(x.shape[1])),
        height(static_cast<int>(x.shape[2])),
        width(static_cast<int>(x.shape[3])),
        radius(static_cast<int>(a.radius)),
        bias(static_cast<float>(a.bias)),
        alpha(static_cast<float>(a.alpha)),
        beta(static_cast<float>(a.beta)) {}
};

// Returns the sum of term(element index) over the pixels of an element's window inside the image.
template <class Term>
__device__ float sum_of_window(std::int64_t element, const WithinSizes& sizes, const Term& term) {
  const std::int64_t pixel = element / sizes.channels;
  const int column = static_cast<int>(pixel % sizes.width);
  const int row = static_cast<int>(pixel / sizes.width % sizes.height);
  const int left = max(column - sizes.radius, 0), top = max(row - sizes.radius, 0);
  const int right = min(column + sizes.radius, sizes.width - 1);
  const int bottom = min(row + sizes.radius, sizes.height - 1);
  float sum = 0;
  for (int h = top; h <= bottom; ++h) {
    for (int w = left; w <= right; ++w) {
      const std::int64_t away = std::int64_t{h - row} * sizes.width + (w - column);
      sum += term(element + away * sizes.channels);
    }
  }
  return sum;
}

// Returns s = bias + alpha sum x^2 over the window.
template <class T>
__device__ float base_within(const T* x, std::int64_t element, const WithinSizes& sizes) {
  const float sum = sum_of_window(element, sizes, [x](std::int64_t i) {
    const float value = to_float(x[i]);
    return value * value;
  });
  return fmaf(sizes.alpha, sum, sizes.bias);
}

template <class T>
__global__ void __launch_bounds__(flat_threads) lrn_within(const T* x, T* y, WithinSizes sizes) {
  for (std::int64_t i = flat_thread(); i < sizes.elements; i += flat_stride()) {
    const float s = base_within(x, i, sizes);
    y[i] = from_float<T>(to_float(x[i]) * powf(s, -sizes.beta));
  }
}

// First pass of the gradient: writes terms = dy x s^(-beta-1).
template <class T>
__global__ void __launch_bounds__(flat_threads)
    lrn_within_terms(const T* x, const T* dy, float* terms, WithinSizes sizes) {
  for (std::int64_t i = flat_thread(); i < sizes.elements; i += flat_stride()) {
    const float s = base_within(x, i, sizes);
    terms[i] = to_float(dy[i]) * powf(s, -sizes.beta) * to_float(x[i]) / s;
  }
}

// Second pass of the gradient: writes dx = dy s^-beta - 2 alpha beta x (sum of the window's terms).
template <class T>
__global__ void __launch_bounds__(flat_threads)
    lrn_within_gradient(const T* x, const T* dy, const float* terms, T* dx, WithinSizes sizes) {
  for (std::int64_t i = flat_thread(); i < sizes.elements; i += flat_stride()) {
    const float s = base_within(x, i, sizes);
    const float sum = sum_of_window(i, sizes, [terms](std::int64_t k) { return terms[k]; });
    dx[i] = from_float<T>(to_float(dy[i]) * powf(s, -sizes.beta) -
                          2 * sizes.alpha * sizes.beta * to_float(x[i]) * sum);
  }
}

// in: x. out: y.
void run_within(Stream& stream, const Operands& operands, const LrnAttributes& attributes) {
  const WithinSizes sizes(attributes, operands.in[0].desc);
  with_type(operands.in[0].desc.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    launch_flat(lrn_within<T>, sizes.elements, stream, data_of<const T>(operands.in[0]),
                data_of<T>(operands.out[0]), sizes);
  });
}

// in: x, dy. out: dx.
void run_within_gradient(Stream& stream, const Operands& operands,
                         const LrnAttributes& attributes) {
  const WithinSizes sizes(attributes, operands.in[0].desc);
  float* const terms = BumpAllocator(operands.workspace).take<float>(sizes.elements);
  with_type(operands.in[0].desc.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T* const x = data_of<const T>(operands.in[0]);
    const T* const dy = data_of<const T>(operands.in[1]);
    launch_flat(lrn_within_terms<T>, sizes.elements, stream, x, dy, terms, sizes);
    launch_flat(lrn_within_gradient<T>, sizes.elements, stream, x, dy,
                static_cast<const float*>(terms), data_of<T>(operands.out[0]), sizes);
  });
}

}  // namespace

void add_lrn_within_rows(KernelTable& table) {
  table.add<WithinLrn>(
      [](const WithinLrn& /*op*/, const Signature& request) { return describe_floats(request); },
      [](const WithinLrn& op, const Signature& /*s*/) {
        return own_kernel([a = op.attributes](Stream& stream, const Operands& operands) {
          run_within(stream, operands, a);
        });
      });
  table.add<WithinLrnBackward>(
      [](const WithinLrnBackward& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        if (!is_float(request.in[0].type)) {
          return std::nullopt;
        }
        BumpAllocator allocator;
        allocator.take<float>(request.in[0].shape.elements());
        return in_nhwc(request, allocator.bytes());
      },
      [](const WithinLrnBackward& op, const Signature& /*s*/) {
        return own_kernel([a = op.attributes](Stream& stream, const Operands& operands) {
          run_within_gradient(stream, operands, a);
        });
      });
}

}  // namespace cnn::layers::cuda
