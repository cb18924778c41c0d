#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cuda_runtime_api.h>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cuda/handle.h"
#include "runtime/device.h"
#include "runtime/shared_handle.h"

namespace cnn::cuda {

using EventHandle = Handle<cudaEvent_t, cudaEventDestroy>;

// Creates an event with cudaEventCreateWithFlags. Throws Error on failure.
EventHandle make_event(unsigned flags);

// An event that orders streams. It takes no timestamps, which makes it cheap.
class CudaEvent final : public Event {
 public:
  CudaEvent() : event_(make_event(cudaEventDisableTiming)) {}
  cudaEvent_t native() const { return event_.get(); }

 private:
  EventHandle event_;
};

// Converts the times of timing events to the host's steady clock. All streams of a device share one
// clock, so that times of different streams are comparable.
class DeviceClock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Call before recording a timing event: sets the origin, unless recorded events still refer to
  // it. Setting it synchronises the stream.
  void acquire(cudaStream_t stream);
  // Returns the host time at which the device reached the event, which must be complete.
  TimePoint time_of(cudaEvent_t reached) const;
  // Releases as many calls of acquire(), whose events are not needed any more.
  void release(std::size_t events);

 private:
  mutable std::mutex mutex_;
  EventHandle origin_;
  TimePoint origin_time_;
  std::size_t acquired_ = 0;  // recorded events that refer to the origin
};

// The first exception of host work on a stream. Thread-safe.
class HostFailure {
 public:
  void keep(std::exception_ptr error);
  bool any() const;
  void rethrow();  // throws and clears the exception, if there is one

 private:
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

// A piece of host work in a stream's order. CUDA receives its address.
struct HostTask {
  std::function<void()> work;
  HostFailure* failure = nullptr;
  std::atomic<bool> pending = false;  // queued or running; always false in a captured graph
};

// A callback that runs while a thread waits for a device: repeatedly with true, and once with false
// when the wait is over. It must end kernels that would wait for ever before it throws: an
// exception from it ends the wait, but synchronize() passes it on only once all work of the stream
// has ended.
using PollCallback = std::function<void(bool waiting)>;

// A CUDA stream that does not synchronise with the default stream. After an error of host work, the
// stream skips further host work until synchronize() has thrown it; kernels and copies still run.
class CudaStream final : public Stream, public SharedHandle {
 public:
  // poll: shared with the device, which may set it later; empty: the host waits without polling.
  CudaStream(int priority, std::shared_ptr<DeviceClock> clock,
             std::shared_ptr<const PollCallback> poll);
  ~CudaStream() override;  // blocks until all queued work has finished
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  void host(std::function<void()> work) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  void stamp(std::chrono::steady_clock::time_point& at) override;
  void synchronize() override;

  cudaStream_t native() const { return stream_.get(); }
  std::shared_ptr<void> shared_handle() const override { return stream_; }
  // Redirects host work to `tasks` while the stream is captured. The deque must live as long as the
  // graph. Null ends the redirection.
  void keep_host_work_in(std::deque<HostTask>* tasks) { recorded_ = tasks; }

 private:
  struct Stamp {
    EventHandle event;
    std::chrono::steady_clock::time_point* at = nullptr;
  };
  static constexpr std::size_t task_count = 256;

  // Blocks while all tasks are pending. Throws the stream's error and exceptions of the poll
  // callback; the tasks are then unchanged.
  HostTask& free_task();
  // Polls until the condition is met, all work has ended or the stream has an error. Returns the
  // stream's latest status, which is cudaErrorNotReady if work remains.
  template <class Condition>
  cudaError_t wait_until(const Condition& is_met);
  cudaError_t wait_for_all();
  void resolve_stamps(bool reached);  // reached: whether the stream has passed all of them

  std::array<HostTask, task_count> tasks_;
  std::size_t next_task_ = 0;
  std::deque<HostTask>* recorded_ = nullptr;
  HostFailure failure_;
  std::shared_ptr<DeviceClock> clock_;
  std::shared_ptr<const PollCallback> poll_;
  std::vector<Stamp> stamps_;  // a pool, whose events are reused
  std::size_t stamped_ = 0;    // the number of stamps_ in use since the last synchronize()
  std::shared_ptr<CUstream_st> stream_;
};

// Returns the CUDA stream of a stream of a CudaDevice. Throws Error for a stream of another device.
cudaStream_t native(Stream& stream);

}  // namespace cnn::cuda
