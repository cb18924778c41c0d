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

// One launch over many tensors of f32. Their addresses travel in the launch's parameters, of which
// a device takes 4 KB: a few launches for the parameters of a network.
namespace cnn::layers::cuda {

// Elements that one block takes of one tensor: 8 accesses of 16 bytes a thread. Sums are made by
// chunk, then over chunks, and so do not depend on the grid.
inline constexpr std::int64_t chunk_elements = block_threads * 4 * 8;

struct Nothing {};

// Tensors that lie alike, `arrays` of each (a parameter, its gradient...), and what else a kernel
// wants to know of each.
template <int arrays, class More = Nothing>
struct ChunkedTensor : More {
  float* data[arrays];
  std::int32_t first_chunk;  // counted through all tensors of the launch
  std::int32_t elements;
  float factor;  // what one tensor has and another has not
};

template <int arrays, class More = Nothing>
struct ChunkedTensors {
  static constexpr int capacity = static_cast<int>(3840 / sizeof(ChunkedTensor<arrays, More>));
  ChunkedTensor<arrays, More> tensor[capacity];
  std::int32_t count = 0;
  std::int32_t chunks = 0;

  // Returns the index of the tensor to which the calling block's chunk belongs.
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

// Calls visit(first element, integral_constant<int, width>) for what the calling thread has of its
// block's chunk, of a tensor of `elements`.
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

// Calls start(tensors, number of the first chunk) for groups that fit a launch. `describe(i)` gives
// the arrays of tensor i with its elements.
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

inline std::int32_t checked_elements(const TensorDesc& desc) {
  const std::int64_t elements = desc.shape.elements();
  check(elements < (std::int64_t{1} << 31),
        "a kernel over many tensors takes none of 2^31 or more "
        "elements, such as " +
            to_string(desc));
  return static_cast<std::int32_t>(elements);
}

}  // namespace cnn::layers::cuda
