#pragma once

#include <cuda_runtime_api.h>
#include <mutex>
#include <string>

#include "tests/support/cuda/runtime/driver.h"

// Tools that the functions of the runtime share. All need the driver's lock.
namespace cnn::tests::emulated {

int current_device();
void set_current_device(int device);

// Keeps the error for cudaGetLastError() and returns it; success changes nothing.
cudaError_t returned(cudaError_t error);
cudaError_t take_last_error();

// The sticky error of the calling thread's device, or success.
cudaError_t sticky_error();

// Success, or why a call that is not allowed while the calling thread captures must be refused; the
// capture is invalid from then on.
cudaError_t refuse_in_capture(const std::string& call);

// Invalidates a capture, naming the call.
cudaError_t invalidate(Capture& capture, cudaError_t error, const std::string& why);

// Whether a handle is one and alive; tells of a violation otherwise.
bool is_alive(const CUstream_st* stream, const std::string& call);
bool is_alive(const CUevent_st* event, const std::string& call);
bool is_alive(const CUgraph_st* graph, const std::string& call);
bool is_alive(const CUgraphExec_st* executable, const std::string& call);

// Tells of a violation if the calling thread runs work of a stream: host work must not call the
// runtime.
bool is_outside_of_host_work(const std::string& call);

// The begin of every call: the lock, and the reasons to refuse it.
class Call {
 public:
  explicit Call(const std::string& name);
  cudaError_t refused() const { return refused_; }  // success: go on
  std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
  cudaError_t refused_ = cudaSuccess;
};

}  // namespace cnn::tests::emulated
