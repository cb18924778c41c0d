#pragma once

#include <cstdint>

#include "layers/cuda/own_kernel.h"
#include "layers/cuda/tile.cuh"
#include "layers/operands.h"
#include "layers/window.h"

// Device code that the pooling kernels share: their geometry as kernel parameters, and the mapping
// of threads to pixels. One thread computes `width` neighbouring channels of one pixel.
namespace cnn::layers::cuda {

struct PoolSizes {
  int n = 0, channels = 0;
  int height = 0, width = 0;          // of the image
  int out_height = 0, out_width = 0;  // of the pooled image
  int kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_top = 0, pad_left = 0;
  int out_pitch = 0;  // elements from one pooled pixel to the next; other images are contiguous
};

// Returns the sizes of a pool. x: the shape of the image and of its gradient. result: the pooled
// image, or its gradient.
inline PoolSizes pool_sizes(const Window& w, const Shape& x, const TensorDesc& result) {
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  const Shape& y = result.shape;
  return {.n = narrow(x[0]),
          .channels = narrow(x[1]),
          .height = narrow(x[2]),
          .width = narrow(x[3]),
          .out_height = narrow(y[2]),
          .out_width = narrow(y[3]),
          .kernel_h = narrow(w.kernel_h),
          .kernel_w = narrow(w.kernel_w),
          .stride_h = narrow(w.stride_h),
          .stride_w = narrow(w.stride_w),
          .pad_top = narrow(w.pad_top),
          .pad_left = narrow(w.pad_left),
          .out_pitch = narrow(pitch_of(result))};
}

// A half-open range of pixels along one axis.
struct Span {
  int begin = 0, end = 0;
};

// Returns the pixels of the image along one axis that the window of output number `at` covers.
__device__ inline Span covered(int at, int stride, int pad, int kernel, int size) {
  const int first = at * stride - pad;
  return {first < 0 ? 0 : first, first + kernel < size ? first + kernel : size};
}

// Returns the outputs along one axis whose windows cover this pixel: the inverse of covered().
__device__ inline Span covering(int pixel, int stride, int pad, int kernel, int outputs) {
  const int last = pixel + pad;  // in the padded image
  const int past = last - kernel + 1;
  const int end = last / stride + 1;
  return {past <= 0 ? 0 : (past + stride - 1) / stride, end < outputs ? end : outputs};
}

// The pixel and the first channel that the calling thread computes.
struct PoolPosition {
  int n = 0, row = 0, column = 0, channel = 0;
  bool exists = false;  // false: the thread lies past the last pixel and has no work

  // Derives the position from the thread index, for an image [n, rows, columns, channels] with
  // `width` channels per thread. Unsigned 32-bit division suffices, because pool_grid() limits the
  // launch to 2^31 threads.
  __device__ PoolPosition(const PoolSizes& sizes, int rows, int columns, int width) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned vectors = static_cast<unsigned>(sizes.channels / width);
    const unsigned pixel = thread / vectors;
    const unsigned line = pixel / static_cast<unsigned>(columns);
    channel = static_cast<int>(thread - pixel * vectors) * width;
    column = static_cast<int>(pixel - line * static_cast<unsigned>(columns));
    n = static_cast<int>(line / static_cast<unsigned>(rows));
    row = static_cast<int>(line) - n * rows;
    exists = n < sizes.n;
  }
};

// Returns the element index of the first channel of a pixel. line: row number over all images.
__device__ inline std::int64_t pixel_at(std::int64_t line, int columns, int column, int pitch) {
  return (line * columns + column) * pitch;
}

// The loads that a thread keeps in flight along a row of its window: a whole row of the common 3x3
// window. Waiting for each load before issuing the next would leave the memory idle.
inline constexpr int taps_in_flight = 3;

// Calls visit(row, column, load(row, column)) for all pixels of the spans in row-major order, with
// taps_in_flight loads issued ahead of their visits.
template <class Load, class Visit>
__device__ void each_tap(Span rows, Span columns, const Load& load, const Visit& visit) {
  for (int row = rows.begin; row < rows.end; ++row) {
    for (int column = columns.begin; column < columns.end; column += taps_in_flight) {
      decltype(load(row, column)) loaded[taps_in_flight];
#pragma unroll
      for (int k = 0; k < taps_in_flight; ++k) {
        loaded[k] = load(row, column + k < columns.end ? column + k : column);
      }
#pragma unroll
      for (int k = 0; k < taps_in_flight; ++k) {
        if (column + k < columns.end) {
          visit(row, column + k, loaded[k]);
        }
      }
    }
  }
}

inline constexpr int pool_threads = 256;
// Returns a grid of pool_threads threads per block with one thread for `width` channels of each
// pixel. Throws Error from 2^31 threads on.
inline dim3 pool_grid(const TensorDesc& image, int width) {
  const std::int64_t threads = image.shape.elements() / width;
  (void)launch_count(threads);  // PoolPosition computes with 32 bits
  return dim3(launch_count(divide_up(threads, pool_threads)));
}

// The operand whose pitch the kernel supports: the pooled image, or its gradient.
enum class Pitched : std::uint8_t { first_input, first_output };

// Adds the kernel table's row of an op with a window, whose kernel run(stream, operands, window)
// enqueues.
template <class O>
void add_pool_row(KernelTable& table, Pitched pitched,
                  void (*run)(Stream&, const Operands&, const Window&)) {
  table.add<O>(
      [pitched](const O& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        KernelSpec spec = in_nhwc(request);
        if (pitched == Pitched::first_input) {
          keep_pitch(spec.in[0], request.in[0]);
        } else {
          keep_pitch(spec.out[0], request.out[0]);
        }
        return spec;
      },
      [run](const O& op, const Signature& /*s*/) {
        return own_kernel([run, window = op.window](Stream& stream, const Operands& operands) {
          run(stream, operands, window);
        });
      });
}

}  // namespace cnn::layers::cuda
