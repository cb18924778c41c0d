#include "runtime/cuda/support.h"

namespace cnn::cuda {

std::span<const int> built_architectures() {
  static constexpr int list[] = {__CUDA_ARCH_LIST__};  // defined by nvcc
  return list;
}

}  // namespace cnn::cuda
