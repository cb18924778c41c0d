#include "tests/support/cuda/runtime/calls.h"

#include <algorithm>
#include <utility>

#include "tests/support/cuda/runtime/violation.h"

namespace cnn::tests::emulated {
namespace {

// The real runtime also keeps these per thread.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
constinit thread_local int device_of_thread = 0;
constinit thread_local cudaError_t last_error = cudaSuccess;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

template <class Object>
bool is_alive_in(const std::deque<std::unique_ptr<Object>>& objects, const Object* object,
                 const char* kind, const std::string& call) {
  const auto found =
      std::ranges::find_if(objects, [&](const auto& known) { return known.get() == object; });
  if (found != objects.end() && !object->destroyed) {
    return true;
  }
  violate(call + " was given " + kind +
          (found == objects.end() ? " that is none" : " that is destroyed"));
  return false;
}

}  // namespace

int current_device() { return device_of_thread; }
void set_current_device(int device) { device_of_thread = device; }

cudaError_t returned(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) {
    last_error = error;
  }
  return error;
}

cudaError_t take_last_error() {
  const cudaError_t sticky = sticky_error();
  const cudaError_t last = std::exchange(last_error, cudaSuccess);
  return sticky == cudaSuccess ? last : sticky;
}

cudaError_t sticky_error() {
  const auto& devices = driver().devices;
  const auto device = static_cast<std::size_t>(device_of_thread);
  return device < devices.size() ? devices[device].sticky : cudaSuccess;
}

cudaError_t invalidate(Capture& capture, cudaError_t error, const std::string& why) {
  if (capture.why_invalid.empty()) {
    capture.why_invalid = why;
    driver().capture_problem = why;
  }
  return returned(error);
}

cudaError_t refuse_in_capture(const std::string& call) {
  for (const auto& stream : driver().streams) {
    if (stream->capture != nullptr && stream->capture->thread == std::this_thread::get_id()) {
      return invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported,
                        call + " was called while the thread captured");
    }
  }
  return cudaSuccess;
}

bool is_alive(const CUstream_st* stream, const std::string& call) {
  return is_alive_in(driver().streams, stream, "a stream", call);
}
bool is_alive(const CUevent_st* event, const std::string& call) {
  return is_alive_in(driver().events, event, "an event", call);
}
bool is_alive(const CUgraph_st* graph, const std::string& call) {
  return is_alive_in(driver().graphs, graph, "a graph", call);
}
bool is_alive(const CUgraphExec_st* executable, const std::string& call) {
  return is_alive_in(driver().executables, executable, "an executable graph", call);
}

bool is_outside_of_host_work(const std::string& call) {
  if (current_queue() == nullptr) {
    return true;
  }
  violate(call + " was called by work on a stream, which must not call the runtime");
  return false;
}

Call::Call(const std::string& name) : lock_(driver().lock.mutex) {
  if (!is_outside_of_host_work(name)) {
    refused_ = returned(cudaErrorNotPermitted);
  } else if (driver().settings.devices == 0) {
    refused_ = returned(cudaErrorNoDevice);
  } else {
    refused_ = returned(sticky_error());
  }
}

}  // namespace cnn::tests::emulated
