#include <algorithm>
#include <cmath>

#include "layers/cuda/block.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/loss.h"

// Softmax cross-entropy, its gradient, and the top-1 and top-5 accuracy. Memory traffic is minimal:
// the forward pass reads the logits, whose second and third reads hit the L1 cache, and writes the
// probabilities, 2 S; the gradient reads these and writes as much, 2 S. S is 2 MB for 512 images of
// 1001 classes.
namespace cnn::layers::cuda {

namespace {

// Returns a grid of one block per row, at most 1024 blocks, which fill every device. Blocks take
// further rows in a grid-stride loop.
dim3 row_grid(std::int64_t rows) {
  constexpr std::int64_t most = 1024;
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(rows, 1, most)));
}

// The logits of a batch, one row per example, with its labels.
struct Rows {
  const float* logits = nullptr;  // or the probabilities, in the gradient
  const std::int32_t* labels = nullptr;
  std::int64_t count = 0;
  std::int64_t classes = 0;
};

// Returns the maximum of a row to every thread of the block.
__device__ float largest_of(const float* row, std::int64_t classes) {
  float largest = row[0];
  for (std::int64_t c = threadIdx.x; c < classes; c += block_threads) {
    largest = row[c] > largest ? row[c] : largest;
  }
  return reduce_block(largest, [](float a, float b) { return a > b ? a : b; });
}

// Writes the probabilities of each row and its loss, -log of the label's probability. Subtracts the
// largest logit first, so that expf cannot overflow. A label outside [0, classes) yields a NaN
// loss, because device code cannot throw.
__global__ void __launch_bounds__(block_threads)
    softmax_rows(Rows rows, float* probabilities, double* losses) {
  for (std::int64_t n = blockIdx.x; n < rows.count; n += gridDim.x) {
    const float* const row = rows.logits + n * rows.classes;
    const float largest = largest_of(row, rows.classes);
    double part = 0;
    for (std::int64_t c = threadIdx.x; c < rows.classes; c += block_threads) {
      part += expf(row[c] - largest);
    }
    const double sum = sum_block(part);
    const auto scale = static_cast<float>(1 / sum);
    for (std::int64_t c = threadIdx.x; c < rows.classes; c += block_threads) {
      probabilities[n * rows.classes + c] = expf(row[c] - largest) * scale;
    }
    if (threadIdx.x == 0) {
      const std::int32_t label = rows.labels[n];
      const bool valid = label >= 0 && label < rows.classes;
      losses[n] = valid ? log(sum) + (static_cast<double>(largest) - row[label]) : nan("");
    }
  }
}

__global__ void __launch_bounds__(block_threads)
    mean_of(const double* losses, std::int64_t count, float* mean) {
  const double sum = sum_array(losses, count);
  if (threadIdx.x == 0) {
    *mean = static_cast<float>(sum / static_cast<double>(count));
  }
}

// Writes dlogits = dloss / N (probabilities - onehot(label)); dlogits may alias the probabilities.
__global__ void __launch_bounds__(block_threads)
    differentiate_rows(Rows rows, const float* dloss, float* dlogits) {
  const float factor = *dloss / static_cast<float>(rows.count);
  for (std::int64_t n = blockIdx.x; n < rows.count; n += gridDim.x) {
    const std::int32_t label = rows.labels[n];
    for (std::int64_t c = threadIdx.x; c < rows.classes; c += block_threads) {
      const std::int64_t at = n * rows.classes + c;
      dlogits[at] = factor * (rows.logits[at] - (c == label ? 1.0F : 0.0F));
    }
  }
}

Rows rows_of(const Operands& o) {
  return {.logits = data_of<const float>(o.in[0]),
          .labels = data_of<const std::int32_t>(o.in[1]),
          .count = o.in[0].desc.shape[0],
          .classes = o.in[0].desc.shape[1]};
}

void forward(Stream& stream, const Operands& o) {
  const Rows rows = rows_of(o);
  auto* const losses = BumpAllocator(o.workspace).take<double>(rows.count);
  cnn::cuda::launch(softmax_rows, row_grid(rows.count), block_threads, reduce_bytes<double>, stream,
                    rows, data_of<float>(o.out[1]), losses);
  cnn::cuda::launch(mean_of, 1, block_threads, reduce_bytes<double>, stream, losses, rows.count,
                    data_of<float>(o.out[0]));
}

void backward(Stream& stream, const Operands& o) {
  const Rows rows = rows_of(o);
  cnn::cuda::launch(differentiate_rows, row_grid(rows.count), block_threads, 0, stream, rows,
                    data_of<const float>(o.in[2]), data_of<float>(o.out[0]));
}

// Writes the rank of each row's label: how many logits are greater than the label's. A row with a
// non-finite logit or an invalid label gets a rank that counts as a miss.
__global__ void __launch_bounds__(block_threads) rank_rows(Rows rows, std::int32_t* ranks) {
  for (std::int64_t n = blockIdx.x; n < rows.count; n += gridDim.x) {
    constexpr std::int32_t miss = 1 << 20;  // its sum over a block fits 31 bits
    const float* const row = rows.logits + n * rows.classes;
    const std::int32_t label = rows.labels[n];
    const bool valid = label >= 0 && label < rows.classes;
    const float own = valid ? row[label] : 0;
    std::int32_t greater = 0;
    bool missed = !valid;
    for (std::int64_t c = threadIdx.x; c < rows.classes; c += block_threads) {
      greater += row[c] > own ? 1 : 0;
      missed = missed || !std::isfinite(row[c]);
    }
    const std::int32_t rank = sum_block(missed ? miss : greater);
    if (threadIdx.x == 0) {
      ranks[n] = rank;
    }
  }
}

// Counts the rows whose rank is below 1 and below 5.
__global__ void __launch_bounds__(block_threads)
    count_hits(const std::int32_t* ranks, std::int64_t count, std::int32_t* top_1,
               std::int32_t* top_5) {
  std::int32_t first = 0;
  std::int32_t fifth = 0;
  for (std::int64_t n = threadIdx.x; n < count; n += block_threads) {
    first += ranks[n] < 1 ? 1 : 0;
    fifth += ranks[n] < 5 ? 1 : 0;
  }
  first = sum_block(first);
  fifth = sum_block(fifth);
  if (threadIdx.x == 0) {
    *top_1 = first;
    *top_5 = fifth;
  }
}

void accuracy(Stream& stream, const Operands& o) {
  const Rows rows = rows_of(o);
  auto* const ranks = BumpAllocator(o.workspace).take<std::int32_t>(rows.count);
  cnn::cuda::launch(rank_rows, row_grid(rows.count), block_threads, reduce_bytes<std::int32_t>,
                    stream, rows, ranks);
  cnn::cuda::launch(count_hits, 1, block_threads, reduce_bytes<std::int32_t>, stream, ranks,
                    rows.count, data_of<std::int32_t>(o.out[0]), data_of<std::int32_t>(o.out[1]));
}

// Returns a spec with a workspace of one Number per row.
template <class Number>
KernelSpec describe_rows(const Signature& request) {
  BumpAllocator allocator;
  allocator.take<Number>(request.in[0].shape[0]);
  return in_nhwc(request, allocator.bytes());
}

}  // namespace

void add_loss_rows(KernelTable& table) {
  table.add<SoftmaxCrossEntropy>(
      [](const SoftmaxCrossEntropy&, const Signature& request) {
        return describe_rows<double>(request);
      },
      [](const SoftmaxCrossEntropy&, const Signature&) { return own_kernel(forward); });
  table.add<SoftmaxCrossEntropyBackward>(
      [](const SoftmaxCrossEntropyBackward&, const Signature& request) { return in_nhwc(request); },
      [](const SoftmaxCrossEntropyBackward&, const Signature&) { return own_kernel(backward); });
  table.add<Accuracy>([](const Accuracy&,
                         const Signature& request) { return describe_rows<std::int32_t>(request); },
                      [](const Accuracy&, const Signature&) { return own_kernel(accuracy); });
}

}  // namespace cnn::layers::cuda
