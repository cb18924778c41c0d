#include "runtime/cuda/support.h"

namespace cnn::cuda {

std::span<const int> built_architectures() {
  static constexpr int list[] = {__CUDA_ARCH_LIST__};  // nvcc's own
  return list;
}

}  // namespace cnn::cuda
