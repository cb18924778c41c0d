#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "tests/support/cuda/runtime/calls.h"
#include "tests/support/cuda/runtime/violation.h"

// Implements events and the order that they make between streams.

namespace cnn::tests::emulated {
namespace {

// Lets the stream join the event's capture.
cudaError_t wait_in_capture(CUstream_st& stream, const CUevent_st& event) {
  if (event.capture == nullptr) {
    return invalidate(*stream.capture, cudaErrorStreamCaptureIsolation,
                      "a stream in capture waited for work outside of the capture");
  }
  if (event.capture->origin->capture != event.capture) {
    return returned(cudaErrorCapturedEvent);  // that capture has ended
  }
  if (stream.capture != nullptr && stream.capture != event.capture) {
    return invalidate(*stream.capture, cudaErrorStreamCaptureMerge,
                      "a stream in capture waited for another capture");
  }
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.capture->streams.push_back(&stream);
  }
  stream.tail.insert(stream.tail.end(), event.nodes.begin(), event.nodes.end());
  return cudaSuccess;
}

}  // namespace
}  // namespace cnn::tests::emulated

using cnn::tests::emulated::Call;
using cnn::tests::emulated::driver;
using cnn::tests::emulated::is_alive;
using cnn::tests::emulated::returned;
using cnn::tests::emulated::violate;

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const Call call("cudaEventCreateWithFlags");
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  auto made = std::make_unique<CUevent_st>();
  made->device = cnn::tests::emulated::current_device();
  made->timing = (flags & cudaEventDisableTiming) == 0;
  *event = driver().events.emplace_back(std::move(made)).get();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Call call("cudaEventDestroy");
  if (!is_alive(event, "cudaEventDestroy")) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  event->destroyed = true;
  event->state.reset();
  event->capture.reset();
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Call call("cudaEventRecord");
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  if (!is_alive(event, "cudaEventRecord") || !is_alive(stream, "cudaEventRecord")) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  if (event->device != stream->device) {
    violate("an event of device " + std::to_string(event->device) +
            " was recorded on a stream of device " + std::to_string(stream->device));
    return returned(cudaErrorInvalidResourceHandle);
  }
  event->capture = stream->capture;
  if (stream->capture != nullptr) {
    event->nodes = stream->tail;
    return cudaSuccess;
  }
  event->state = std::make_shared<cnn::tests::emulated::Moment>();
  driver().enqueue(*stream, {.name = "the record of an event", .done = event->state});
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  const Call call("cudaStreamWaitEvent");
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  if (!is_alive(stream, "cudaStreamWaitEvent") || !is_alive(event, "cudaStreamWaitEvent")) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture != nullptr || event->capture != nullptr) {
    return cnn::tests::emulated::wait_in_capture(*stream, *event);
  }
  if (event->state == nullptr) {
    violate("a stream was to wait for an event that was never recorded, which waits for nothing");
    return cudaSuccess;
  }
  driver().enqueue(*stream, {.name = "a wait for an event", .waits = {event->state}});
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Call call("cudaEventSynchronize");
  if (!is_alive(event, "cudaEventSynchronize")) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  if (event->capture != nullptr) {
    return invalidate(*event->capture, cudaErrorCapturedEvent,
                      "cudaEventSynchronize was called on an event in capture");
  }
  if (event->state != nullptr) {
    const cnn::tests::emulated::EventState state = event->state;
    driver().lock.changed.wait(call.lock(), [&] { return state->reached; });
  }
  return returned(cnn::tests::emulated::sticky_error());
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Call call("cudaEventElapsedTime");
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  if (!is_alive(start, "cudaEventElapsedTime") || !is_alive(end, "cudaEventElapsedTime")) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  if (start->capture != nullptr || end->capture != nullptr) {
    return returned(cudaErrorCapturedEvent);
  }
  if (start->state == nullptr || end->state == nullptr || !start->timing || !end->timing ||
      start->device != end->device) {
    violate("the time between two events was asked of which one has no time");
    return returned(cudaErrorInvalidResourceHandle);
  }
  if (!start->state->reached || !end->state->reached) {
    return cudaErrorNotReady;
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->state->at - start->state->at).count();
  return cudaSuccess;
}

}  // extern "C"
