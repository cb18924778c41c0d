#include "runtime/cuda/launch.h"
#include "tests/runtime/cuda/kernels.h"

namespace cnn::cuda::tests {
namespace {

__global__ void scale_and_add_one_kernel(std::int32_t* data, int count, std::int32_t factor) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) {
    data[i] = data[i] * factor + 1;
  }
}

template <class T>
__global__ void reverse_kernel(T* data, int count, std::size_t spare_bytes) {
  const Shared<T> shared(spare_bytes, count);
  const int i = static_cast<int>(threadIdx.x);
  shared[i] = data[i];
  __syncthreads();
  data[i] = shared[count - 1 - i];
}

__global__ void spin_kernel(std::int64_t clocks) {
  const std::int64_t start = clock64();
  while (clock64() - start < clocks) {
  }
}

template <class T>
void launch_reverse(Stream& stream, T* data, int count, std::size_t spare_bytes) {
  const auto bytes = spare_bytes + static_cast<std::size_t>(count) * sizeof(T);
  launch(reverse_kernel<T>, dim3(1), dim3(static_cast<unsigned>(count)), bytes, stream, data, count,
         spare_bytes);
}

}  // namespace

void scale_and_add_one(Stream& stream, std::int32_t* data, int count, std::int32_t factor) {
  const auto blocks = static_cast<unsigned>((count + 255) / 256);
  launch(scale_and_add_one_kernel, dim3(blocks), dim3(256), 0, stream, data, count, factor);
}

void reverse(Stream& stream, float* data, int count, std::size_t spare_bytes) {
  launch_reverse(stream, data, count, spare_bytes);
}

void reverse(Stream& stream, double* data, int count, std::size_t spare_bytes) {
  launch_reverse(stream, data, count, spare_bytes);
}

void spin(Stream& stream, std::int64_t clocks) {
  launch(spin_kernel, dim3(1), dim3(1), 0, stream, clocks);
}

}  // namespace cnn::cuda::tests
