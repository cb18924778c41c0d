#pragma once

#include <algorithm>
#include <cstdint>

#include "layers/cuda/flat.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/vector.cuh"
#include "layers/operands.h"
#include "runtime/cuda/launch.h"

// Batched matrix transposition, which converts images and weights between nchw and nhwc: for each
// image it transposes a matrix of channels x pixels. Every byte is read once and written once.
namespace cnn::layers::cuda {

inline constexpr int transpose_edge = 32;
inline constexpr int transpose_lines = 8;  // a thread moves edge / lines elements

// A batch of matrices of rows x columns in square tiles. A block transposes one tile of every
// gridDim.y-th matrix.
struct Matrices {
  std::int64_t count = 0;
  std::int64_t rows = 0, columns = 0;

  __host__ __device__ std::int64_t column_tiles() const {
    return (columns + transpose_edge - 1) / transpose_edge;
  }
  __host__ __device__ std::int64_t row_tiles() const {
    return (rows + transpose_edge - 1) / transpose_edge;
  }
};

// Writes to[m][c][r] = function(from[m][r][c]). Tiles are staged in shared memory, so that loads
// and stores are both coalesced; rows of the staged tile are padded by one element, so that reading
// a column causes no bank conflicts.
template <class From, class To, class Function>
__global__ void __launch_bounds__(transpose_edge* transpose_lines)
    transpose_tiles(const From* from, To* to, Matrices matrices, Function function) {
  constexpr int pitch = transpose_edge + 1;
  const cnn::cuda::Shared<float> tile(0, transpose_edge * pitch);
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const std::int64_t row0 = blockIdx.x / matrices.column_tiles() * transpose_edge;
  const std::int64_t column0 = blockIdx.x % matrices.column_tiles() * transpose_edge;
  for (std::int64_t m = blockIdx.y; m < matrices.count; m += gridDim.y) {
    const std::int64_t base = m * matrices.rows * matrices.columns;
#pragma unroll
    for (int line = y; line < transpose_edge; line += transpose_lines) {
      if (row0 + line < matrices.rows && column0 + x < matrices.columns) {
        const From value = from[base + (row0 + line) * matrices.columns + column0 + x];
        tile[line * pitch + x] = function(to_float(value));
      }
    }
    __syncthreads();
#pragma unroll
    for (int line = y; line < transpose_edge; line += transpose_lines) {
      if (column0 + line < matrices.columns && row0 + x < matrices.rows) {
        to[base + (column0 + line) * matrices.rows + row0 + x] =
            from_float<To>(tile[x * pitch + line]);
      }
    }
    __syncthreads();
  }
}

// The same for matrices with a side so short that most of each tile would be empty: a thread takes
// one index along the long side and loops over the short one. The strided accesses of neighbouring
// threads share cache lines.
template <class From, class To, class Function>
__global__ void __launch_bounds__(flat_threads)
    transpose_lines_of(const From* from, To* to, Matrices matrices, Function function) {
  const bool few_rows = matrices.rows <= matrices.columns;
  const std::int64_t length = few_rows ? matrices.columns : matrices.rows;
  const std::int64_t width = few_rows ? matrices.rows : matrices.columns;
  for (std::int64_t i = flat_thread(); i < matrices.count * length; i += flat_stride()) {
    const std::int64_t base = i / length * matrices.rows * matrices.columns;
    const std::int64_t along = i % length;
    for (std::int64_t k = 0; k < width; ++k) {
      const std::int64_t strided = base + k * length + along;
      const std::int64_t contiguous = base + along * width + k;
      const From value = from[few_rows ? strided : contiguous];
      to[few_rows ? contiguous : strided] = from_float<To>(function(to_float(value)));
    }
  }
}

// Returns the matrices of an image in nchw or nhwc, as its layout orders rows and columns.
inline Matrices matrices_of(const TensorDesc& from) {
  const Dims d = dims(from.shape);
  return from.layout == Layout::nchw ? Matrices{d.n, d.c, d.pixels()}
                                     : Matrices{d.n, d.pixels(), d.c};
}

// Returns whether the two layouts order the elements of this shape in the same way.
inline bool same_order(const TensorDesc& a, const TensorDesc& b) {
  const Shape& s = a.shape;
  return a.layout == b.layout || s.rank() != 4 || s[1] == 1 || s[2] * s[3] == 1;
}

// Enqueues to = function(from), each operand in nchw or nhwc. The operands may alias only if
// same_order() is true for them.
template <class From, class To, class Function>
void launch_reorder(const TensorView& from, const TensorView& to, Function function,
                    Stream& stream) {
  if (same_order(from.desc, to.desc)) {
    launch_map<From, To>(from, to, function, stream);
    return;
  }
  constexpr std::int64_t few = 8;
  constexpr std::int64_t max_images = 65535;  // gridDim.y
  const Matrices matrices = matrices_of(from.desc);
  if (std::min(matrices.rows, matrices.columns) <= few) {
    launch_flat(transpose_lines_of<From, To, Function>,
                matrices.count * std::max(matrices.rows, matrices.columns), stream,
                data_of<const From>(from), data_of<To>(to), matrices, function);
    return;
  }
  const dim3 grid(launch_count(matrices.row_tiles() * matrices.column_tiles()),
                  static_cast<unsigned>(std::min(matrices.count, max_images)));
  cnn::cuda::launch(transpose_tiles<From, To, Function>, grid,
                    dim3(transpose_edge, transpose_lines),
                    transpose_edge * (transpose_edge + 1) * sizeof(float), stream,
                    data_of<const From>(from), data_of<To>(to), matrices, function);
}

}  // namespace cnn::layers::cuda
