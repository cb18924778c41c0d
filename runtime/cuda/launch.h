#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <tuple>
#include <utility>

#include "runtime/cuda/error.h"
#include "runtime/cuda/occupancy.h"
#include "runtime/cuda/stream.h"

// How our kernels are launched and use shared memory. Kernels use only this header's parts of CUDA
// and the plain builtins (threadIdx, __syncthreads, warp shuffles and votes, integer atomics): the
// tests replace this header by an emulation of the grid.
namespace cnn::cuda {

// The shared memory that every block may use without a larger limit, in bytes.
inline constexpr std::size_t default_shared_bytes = 48U << 10U;

// Returns the blocks that the device holds at once; see occupancy.h.
template <class... Parameters>
std::int64_t max_resident_blocks(void (*kernel)(Parameters...), int threads,
                                 std::size_t shared_bytes) {
  return max_resident_blocks(reinterpret_cast<const void*>(kernel), threads, shared_bytes);
}

// Enqueues kernel<<<grid, block, shared_bytes>>>(args...). Throws Error if the launch is refused.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            Stream& stream, Arguments&&... arguments) {
  const auto* entry = reinterpret_cast<const void*>(kernel);
  if (shared_bytes > default_shared_bytes) {
    check(cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)));
  }
  std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  std::apply(
      [&](auto&... value) {
        std::array<void*, sizeof...(Parameters)> pointers{&value...};
        check(cudaLaunchKernel(entry, grid, block, pointers.data(), shared_bytes, native(stream)));
      },
      values);
}

// The dynamic shared memory of a block.
__device__ inline unsigned char* block_memory() {
  extern __shared__ __align__(16) unsigned char bytes[];
  return bytes;
}

// `count` elements of the block's dynamic shared memory, from offset_bytes on. Undefined until
// written; a thread may read another thread's writes only after __syncthreads().
template <class T>
class Shared {
 public:
  __device__ Shared(std::size_t offset_bytes, int /*count*/)
      : data_(reinterpret_cast<T*>(block_memory() + offset_bytes)) {}
  __device__ T& operator[](int index) const { return data_[index]; }

 private:
  T* data_;
};

}  // namespace cnn::cuda
