#include "runtime/cuda/error.h"

#include <algorithm>
#include <array>

namespace cnn::cuda {
namespace {

// Returns whether the status is a sticky error, which a kernel caused earlier and which every later
// call returns again.
bool is_left_by_work(cudaError_t status) {
  constexpr std::array errors{cudaErrorIllegalAddress,     cudaErrorLaunchFailure,
                              cudaErrorLaunchTimeout,      cudaErrorAssert,
                              cudaErrorHardwareStackError, cudaErrorIllegalInstruction,
                              cudaErrorMisalignedAddress,  cudaErrorInvalidAddressSpace,
                              cudaErrorInvalidPc,          cudaErrorECCUncorrectable};
  return std::ranges::find(errors, status) != errors.end();
}

}  // namespace

std::string text_of(cudaError_t status) {
  return std::string(cudaGetErrorName(status)) + ": " + cudaGetErrorString(status);
}

void check(cudaError_t status, std::source_location at) {
  if (status != cudaSuccess) [[unlikely]] {
    // Clears the error that the runtime keeps for the next query, which would blame an unrelated
    // call.
    static_cast<void>(cudaGetLastError());
    throw Error(text_of(status) + (is_left_by_work(status)
                                       ? "; only with --sync_each_kernel is an operation that is "
                                         "named here the one that has failed"
                                       : ""),
                at);
  }
}

}  // namespace cnn::cuda
