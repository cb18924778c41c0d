#include "runtime/cuda/error.h"

namespace cnn::cuda {

std::string text_of(cudaError_t status) {
  return std::string(cudaGetErrorName(status)) + ": " + cudaGetErrorString(status);
}

void check(cudaError_t status, std::source_location at) {
  if (status != cudaSuccess) [[unlikely]] {
    // The runtime also keeps the error for whoever asks next: that would blame an innocent call.
    static_cast<void>(cudaGetLastError());
    throw Error(text_of(status), at);
  }
}

}  // namespace cnn::cuda
