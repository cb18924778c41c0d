#include "layers/cuda/host_flag.h"
#include "runtime/cuda/launch.h"

namespace cnn::layers::cuda {
namespace {

// Only the host writes `failed`, and it never clears it, so that waits which begin later end at
// once.
__global__ void wait_for_flag_kernel(volatile std::uint32_t* flag) {
  volatile std::uint32_t *const done = flag, *const failed = flag + 1, *const waits = flag + 2;
  *waits = 1;
  while (*done == 0 && *failed == 0) {
  }
  *done = 0;
  *waits = 0;
}

}  // namespace

void wait_for_flag(Stream& stream, std::uint32_t* flag) {
  cnn::cuda::launch(wait_for_flag_kernel, dim3(1), dim3(1), 0, stream,
                    static_cast<volatile std::uint32_t*>(flag));
}

}  // namespace cnn::layers::cuda
