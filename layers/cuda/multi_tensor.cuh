#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "layers/cuda/block.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/vector.cuh"
#include "runtime/cuda/launch.h"
#include "runtime/error.h"

// Multi-tensor apply: one kernel launch processes many f32 tensors, cut into chunks of equal size.
// The kernel parameters, which are limited to 4 KB, hold the table of addresses, so that a few
// launches cover all parameters of a network.
namespace cnn::layers::cuda {

// The elements of a chunk, the part of a tensor that one block processes: 8 accesses of 16 bytes
// per thread. Sums are computed per chunk and then over chunks, so that they do not depend on the
// grid.
inline constexpr std::int64_t chunk_elements = block_threads * 4 * 8;

struct Nothing {};

// An entry of the table: the addresses of `arrays` tensors of one shape and layout (a parameter,
// its gradient, its optimizer slots), and the members of More that the kernel needs for them.
template <int arrays, class More = Nothing>
struct ChunkedTensor : More {
  float* data[arrays];
  std::int32_t first_chunk;  // number of its first chunk among all chunks of the launch
  std::int32_t elements;
  float factor;  // a factor of this tensor, such as its weight decay
};

// The table of one launch, passed to the kernel by value.
template <int arrays, class More = Nothing>
struct ChunkedTensors {
  static constexpr int capacity = static_cast<int>(3840 / sizeof(ChunkedTensor<arrays, More>));
  ChunkedTensor<arrays, More> tensor[capacity];
  std::int32_t count = 0;
  std::int32_t chunks = 0;

  // Returns the index of the tensor that contains chunk blockIdx.x, by binary search.
  __device__ int tensor_of_block() const {
    int low = 0;
    int high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (tensor[middle].first_chunk <= static_cast<int>(blockIdx.x)) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

// Calls visit(first element, integral_constant<int, width>) for the calling thread's packs of this
// chunk of a tensor with `elements` elements; width is 4, or 1 for the remaining elements.
template <class Visit>
__device__ void each_pack_of_chunk(int chunk, std::int32_t elements, const Visit& visit) {
  const std::int64_t begin = chunk * chunk_elements;
  const std::int64_t left = elements - begin;
  const std::int64_t n = left < chunk_elements ? left : chunk_elements;
#pragma unroll 2
  for (std::int64_t at = threadIdx.x * 4; at + 4 <= n; at += block_threads * 4) {
    visit(begin + at, std::integral_constant<int, 4>{});
  }
  const std::int64_t rest = n / 4 * 4 + threadIdx.x;
  if (rest < n) {
    visit(begin + rest, std::integral_constant<int, 1>{});
  }
}

// Return the number of chunks of one tensor, and of several.
inline std::int64_t chunks_of(const TensorDesc& desc) {
  return divide_up(desc.shape.elements(), chunk_elements);
}

inline std::int64_t chunks_of(std::span<const TensorDesc> tensors) {
  std::int64_t sum = 0;
  for (const TensorDesc& desc : tensors) {
    sum += chunks_of(desc);
  }
  return sum;
}

// Groups `count` tensors into tables that fit the kernel parameters, and calls start(table, number
// of its first chunk among the chunks of all tables) for each. describe(i) returns the entry of
// tensor i, whose first_chunk it need not set.
template <int arrays, class More = Nothing, class Describe, class Start>
void each_launch(std::size_t count, const Describe& describe, const Start& start) {
  ChunkedTensors<arrays, More> group;
  std::int64_t first_chunk = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ChunkedTensor<arrays, More> tensor = describe(i);
    tensor.first_chunk = group.chunks;
    group.tensor[group.count++] = tensor;
    group.chunks += static_cast<std::int32_t>(divide_up(tensor.elements, chunk_elements));
    if (group.count == group.capacity || i + 1 == count) {
      if (group.chunks > 0) {
        start(group, first_chunk);
      }
      first_chunk += group.chunks;
      group.count = group.chunks = 0;
    }
  }
}

// Returns the number of elements of a tensor. Throws Error if it has 2^31 or more.
inline std::int32_t checked_elements(const TensorDesc& desc) {
  const std::int64_t elements = desc.shape.elements();
  check(elements < (std::int64_t{1} << 31),
        "a kernel over many tensors takes none of 2^31 or more "
        "elements, such as " +
            to_string(desc));
  return static_cast<std::int32_t>(elements);
}

}  // namespace cnn::layers::cuda
