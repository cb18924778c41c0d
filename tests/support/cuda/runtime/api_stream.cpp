#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/cuda/runtime/calls.h"
#include "tests/support/cuda/runtime/violation.h"

// Implements streams and their host functions.

using cnn::tests::emulated::Call;
using cnn::tests::emulated::driver;
using cnn::tests::emulated::is_alive;
using cnn::tests::emulated::returned;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  const Call call("cudaStreamCreateWithPriority");
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  if (flags != cudaStreamNonBlocking) {
    cnn::tests::emulated::violate("the emulation has no stream that waits for the default stream");
    return returned(cudaErrorInvalidValue);
  }
  auto made = std::make_unique<CUstream_st>();
  made->device = cnn::tests::emulated::current_device();
  made->priority = std::clamp(priority, -5, 0);
  made->queue = driver().make_queue(made->device);
  *stream = driver().streams.emplace_back(std::move(made)).get();
  return cudaSuccess;
}

// Returns at once like the real call, and queued work still runs. The call also ends the queues of
// destroyed streams that have become empty.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  // They join their threads outside the lock.
  std::vector<std::unique_ptr<cnn::tests::emulated::Queue>> ended;
  {
    const Call call("cudaStreamDestroy");
    if (!is_alive(stream, "cudaStreamDestroy")) {
      return returned(cudaErrorInvalidResourceHandle);
    }
    if (stream->capture != nullptr) {
      cnn::tests::emulated::violate("a stream was destroyed while it was captured");
      return returned(cudaErrorStreamCaptureUnsupported);
    }
    stream->destroyed = true;
    stream->queue->set_held(false);
    for (const auto& other : driver().streams) {
      if (other->destroyed && other->queue != nullptr && other->queue->is_empty()) {
        ended.push_back(std::move(other->queue));
      }
    }
  }
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Call call("cudaStreamQuery");
  if (!is_alive(stream, "cudaStreamQuery")) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture != nullptr) {
    return invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported,
                      "cudaStreamQuery was called on a stream in capture");
  }
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  return stream->queue->is_empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Call call("cudaStreamSynchronize");
  if (!is_alive(stream, "cudaStreamSynchronize")) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture != nullptr) {
    return invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported,
                      "cudaStreamSynchronize was called on a stream in capture");
  }
  driver().lock.changed.wait(call.lock(), [&] { return stream->queue->is_empty(); });
  return returned(driver().devices[static_cast<std::size_t>(stream->device)].sticky);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  const Call call("cudaLaunchHostFunc");
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  if (!is_alive(stream, "cudaLaunchHostFunc")) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  driver().enqueue(*stream, {.name = "host work", .body = [=] { function(argument); }});
  return cudaSuccess;
}

}  // extern "C"
