#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device.h"
#include "runtime/required.h"
#include "runtime/tensor.h"

// Our own kernels before and after the engines of convolutions and matrix products, on rows of
// channels: an image in nhwc has a row for each pixel, weights have one for each tap of a filter.
// All pointers are device memory; every function enqueues its work and returns.
namespace cnn::layers::cuda {

// Pads 16-bit rows of `channels` elements with zeros to rows of `padded` elements, 4 or 8. Throws
// Error for any other padding.
struct PadRows {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  Required<std::int64_t> rows;
  Required<int> channels, padded;
};
void pad_rows(Stream& stream, const PadRows& pad);

// Converts rows of `padded` 16-bit elements to f32 rows of their first `channels`.
struct WidenRows {
  const std::byte* from = nullptr;
  float* to = nullptr;
  Required<DataType> type;
  Required<std::int64_t> rows;
  Required<int> channels, padded;
};
void widen_rows(Stream& stream, const WidenRows& widen);

// Column sums: sums[c] = sum of from[r][c] over all rows. They are deterministic: f32 partial sums
// over chunks of some hundred rows are added in double.
struct SumRows {
  const std::byte* from = nullptr;
  Required<DataType> type;
  Required<std::int64_t> rows;
  Required<int> columns;
  Required<std::int64_t> pitch;  // elements from one row to the next
  float* sums = nullptr;
  float* partial = nullptr;  // sum_rows_workspace() bytes
};
// Returns the workspace of sum_rows() in bytes.
std::size_t sum_rows_workspace(std::int64_t rows, int columns);
void sum_rows(Stream& stream, const SumRows& sum);

// The epilogue of a convolution: y = relu(y + bias[c] + residual) in place. A null bias or residual
// is omitted, and the ReLU unless `relu`.
struct Epilogue {
  std::byte* y = nullptr;
  const float* bias = nullptr;
  const std::byte* residual = nullptr;
  bool relu = false;
  Required<DataType> type;
  Required<std::int64_t> rows;
  Required<int> channels;
  // Elements from one row of y to the next; the residual is contiguous.
  Required<std::int64_t> pitch;
};
void run_epilogue(Stream& stream, const Epilogue& epilogue);

}  // namespace cnn::layers::cuda
