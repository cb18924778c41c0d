#include <algorithm>
#include <memory>
#include <utility>

#include "tests/support/cuda/runtime/calls.h"
#include "tests/support/cuda/runtime/violation.h"

// Implements the capture of streams into graphs.

namespace cnn::tests::emulated {
namespace {

// Returns whether one of `ends` follows every node of the capture, directly or indirectly.
bool is_joined(const Capture& capture, const std::vector<std::size_t>& ends) {
  std::vector<bool> reached(capture.nodes.size());
  std::vector<std::size_t> open = ends;
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (!reached[node]) {
      reached[node] = true;
      const std::vector<std::size_t>& before = capture.nodes[node].after;
      open.insert(open.end(), before.begin(), before.end());
    }
  }
  return std::ranges::all_of(reached, [](bool r) { return r; });
}

// Ends a capture and returns all its streams to normal operation.
cudaError_t finish(Capture& capture, const std::vector<std::size_t>& ends) {
  const bool joined = is_joined(capture, ends);
  for (CUstream_st* stream : capture.streams) {
    stream->capture.reset();
    stream->tail.clear();
  }
  if (!joined || !capture.why_invalid.empty()) {
    capture.nodes.clear();  // the graph owns the nodes now; events may keep the capture alive
  }
  if (!capture.why_invalid.empty()) {
    return returned(cudaErrorStreamCaptureInvalidated);
  }
  if (!joined) {
    driver().capture_problem = "a stream in capture was never joined";
  }
  return joined ? cudaSuccess : returned(cudaErrorStreamCaptureUnjoined);
}

}  // namespace
}  // namespace cnn::tests::emulated

using cnn::tests::emulated::Call;
using cnn::tests::emulated::driver;
using cnn::tests::emulated::is_alive;
using cnn::tests::emulated::returned;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const Call call("cudaStreamBeginCapture");
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  if (!is_alive(stream, "cudaStreamBeginCapture")) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  if (mode != cudaStreamCaptureModeThreadLocal) {
    cnn::tests::emulated::violate("the emulation captures in the thread-local mode only");
    return returned(cudaErrorInvalidValue);
  }
  if (stream->capture != nullptr) {
    return returned(cudaErrorIllegalState);
  }
  stream->capture = std::make_shared<cnn::tests::emulated::Capture>();
  stream->capture->origin = stream;
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->streams = {stream};
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Call call("cudaStreamEndCapture");
  *graph = nullptr;
  if (!is_alive(stream, "cudaStreamEndCapture")) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  const auto capture = stream->capture;
  if (capture == nullptr) {
    return returned(cudaErrorIllegalState);
  }
  if (capture->origin != stream) {
    return invalidate(*capture, cudaErrorStreamCaptureUnmatched,
                      "the capture was ended on another stream than it began on");
  }
  if (capture->thread != std::this_thread::get_id()) {
    return returned(cudaErrorStreamCaptureWrongThread);
  }
  const std::vector<std::size_t> ends = stream->tail;
  if (const cudaError_t error = cnn::tests::emulated::finish(*capture, ends);
      error != cudaSuccess) {
    return error;
  }
  auto made = std::make_unique<CUgraph_st>();
  made->nodes = std::move(capture->nodes);
  made->lanes = capture->streams.size();
  *graph = driver().graphs.emplace_back(std::move(made)).get();
  return cudaSuccess;
}

}  // extern "C"
