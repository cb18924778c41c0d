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

// Kernel launch and dynamic shared memory. Our kernels use CUDA only through this header and
// through plain builtins (threadIdx, __syncthreads, warp shuffles and votes, integer atomics), so
// that the tests can replace this header by an emulation of the grid on the host.
namespace cnn::cuda {

// The dynamic shared memory that a block may use without opting in to a larger limit, in bytes.
inline constexpr std::size_t default_shared_bytes = 48U << 10U;

// Returns the number of blocks of one wave; see occupancy.h.
template <class... Parameters>
std::int64_t max_resident_blocks(void (*kernel)(Parameters...), int threads,
                                 std::size_t shared_bytes) {
  return max_resident_blocks(reinterpret_cast<const void*>(kernel), threads, shared_bytes);
}

// Enqueues kernel<<<grid, block, shared_bytes>>>(arguments...) on the stream. Throws Error if the
// runtime rejects the launch.
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

// Returns the start of the block's dynamic shared memory.
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
