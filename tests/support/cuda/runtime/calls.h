#pragma once

#include <cuda_runtime_api.h>
#include <mutex>
#include <string>

#include "tests/support/cuda/runtime/driver.h"

// Helpers that the functions of the emulated runtime share. All need the driver's lock.
namespace cnn::tests::emulated {

int current_device();
void set_current_device(int device);

// Keeps an error for cudaGetLastError() and returns it; success leaves the kept error unchanged.
cudaError_t returned(cudaError_t error);
cudaError_t take_last_error();

// Returns the sticky error of the calling thread's device, or success.
cudaError_t sticky_error();

// Returns the error for a call that a capturing thread must not make, and invalidates the capture.
// Returns success if the thread does not capture.
cudaError_t refuse_in_capture(const std::string& call);

// Invalidates a capture for this reason.
cudaError_t invalidate(Capture& capture, cudaError_t error, const std::string& why);

// Returns whether the handle's object is alive; otherwise reports a violation.
bool is_alive(const CUstream_st* stream, const std::string& call);
bool is_alive(const CUevent_st* event, const std::string& call);
bool is_alive(const CUgraph_st* graph, const std::string& call);
bool is_alive(const CUgraphExec_st* executable, const std::string& call);

// Reports a violation if the calling thread runs a stream's work, because host work must not call
// the runtime.
bool is_outside_of_host_work(const std::string& call);

// Begins every call: takes the lock and checks for reasons to refuse the call.
class Call {
 public:
  explicit Call(const std::string& name);
  cudaError_t refused() const { return refused_; }  // success means that the call may go on
  std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
  cudaError_t refused_ = cudaSuccess;
};

}  // namespace cnn::tests::emulated
