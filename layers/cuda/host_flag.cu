#include "layers/cuda/host_flag.h"
#include "runtime/cuda/launch.h"

namespace cnn::layers::cuda {
namespace {

__global__ void wait_for_flag_kernel(volatile std::uint32_t* flag) {
  while (*flag == 0) {
  }
  if (*flag == 1) {
    *flag = 0;
  }
}

}  // namespace

void wait_for_flag(Stream& stream, std::uint32_t* flag) {
  cnn::cuda::launch(wait_for_flag_kernel, dim3(1), dim3(1), 0, stream,
                    static_cast<volatile std::uint32_t*>(flag));
}

}  // namespace cnn::layers::cuda
