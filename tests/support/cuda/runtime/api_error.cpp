#include <array>

#include "tests/support/cuda/runtime/calls.h"

// Implements the calling thread's last error and the names of errors.

namespace {

struct Row {
  cudaError_t error;
  const char *name, *text;
};

constexpr std::array rows{
    Row{cudaSuccess, "cudaSuccess", "no error"},
    Row{cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    Row{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    Row{cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
        "invalid configuration argument"},
    Row{cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
        "CUDA driver version is insufficient for CUDA runtime version"},
    Row{cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction",
        "invalid device function"},
    Row{cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    Row{cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    Row{cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle",
        "invalid resource handle"},
    Row{cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    Row{cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
        "an illegal memory access was encountered"},
    Row{cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    Row{cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
        "part or all of the requested memory range is already mapped"},
    Row{cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
        "pointer does not correspond to a registered memory region"},
    Row{cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    Row{cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
        "operation not permitted when stream is capturing"},
    Row{cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
        "operation failed due to a previous error during capture"},
    Row{cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
        "operation would result in a merge of separate capture sequences"},
    Row{cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
        "capture was not ended in the same stream as it began"},
    Row{cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
        "capturing stream has unjoined work"},
    Row{cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
        "dependency created on uncaptured work in another stream"},
    Row{cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
        "operation not permitted on an event last recorded in a capturing stream"},
    Row{cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
        "attempt to terminate a thread-local capture sequence from another thread"},
};

const Row* find(cudaError_t error) {
  for (const Row& row : rows) {
    if (row.error == error) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  const Row* row = find(error);
  return row == nullptr ? "unrecognized error code" : row->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const Row* row = find(error);
  return row == nullptr ? "unrecognized error code" : row->text;
}

cudaError_t cudaGetLastError() { return cnn::tests::emulated::take_last_error(); }

}  // extern "C"
