#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <tuple>
#include <utility>

#include "runtime/cuda/error.h"
#include "runtime/cuda/occupancy.h"
#include "runtime/cuda/stream.h"
#include "tests/support/cuda/runtime/kernels.h"
#include "tests/support/grid/device_language.h"

// Stands in for runtime/cuda/launch.h when kernels run on the emulated GPU: the calls of the real
// one, after the kernel has entered the table of kernels, which nvcc does for the real one.
namespace cnn::cuda {

inline constexpr std::size_t default_shared_bytes = 48U << 10U;

template <class... Parameters>
std::int64_t max_resident_blocks(void (*kernel)(Parameters...), int threads,
                                 std::size_t shared_bytes) {
  cnn::tests::emulated::add_kernel(kernel);
  return max_resident_blocks(reinterpret_cast<const void*>(kernel), threads, shared_bytes);
}

// NOLINTNEXTLINE(readability-function-size): takes what a launch needs, as the real one
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            Stream& stream, Arguments&&... arguments) {
  cnn::tests::emulated::add_kernel(kernel);
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

}  // namespace cnn::cuda
