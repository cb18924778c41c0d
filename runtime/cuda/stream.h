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

EventHandle make_event(unsigned flags);

// Orders streams. The event takes no timestamps, so it is cheap.
class CudaEvent final : public Event {
 public:
  CudaEvent() : event_(make_event(cudaEventDisableTiming)) {}
  cudaEvent_t native() const { return event_.get(); }

 private:
  EventHandle event_;
};

// Converts the times of timing events to the host's clock. All streams of a device share it, so
// that times of different streams compare.
class DeviceClock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Called before an event is recorded: sets the origin, unless outstanding events count from it.
  void acquire(cudaStream_t stream);
  TimePoint time_of(cudaEvent_t reached) const;
  void release(std::size_t events);

 private:
  mutable std::mutex mutex_;
  EventHandle origin_;
  TimePoint origin_time_;
  std::size_t acquired_ = 0;
};

// The first error of host work on a stream.
class HostFailure {
 public:
  void keep(std::exception_ptr error);
  bool any() const;
  void rethrow();  // and clears it

 private:
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

// A piece of host work in a stream's order. CUDA receives its address.
struct HostTask {
  std::function<void()> work;
  HostFailure* failure = nullptr;
  std::atomic<bool> pending = false;  // of a task that runs once: queued or running
};

// A callback that runs while a thread waits for a device: repeatedly with true, and once with false
// when the wait is over. An exception from it ends the wait.
using PollCallback = std::function<void(bool waiting)>;

// A CUDA stream that does not synchronise with the default stream. After an error of host work, the
// stream skips further host work until synchronize() has thrown it; kernels and copies still run.
class CudaStream final : public Stream, public SharedHandle {
 public:
  // poll: shared with the device, which may set it later; empty: the host waits without polling.
  CudaStream(int priority, std::shared_ptr<DeviceClock> clock,
             std::shared_ptr<const PollCallback> poll);
  ~CudaStream() override;  // finishes what is queued
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

  HostTask& free_task();  // blocks while all tasks are pending
  cudaError_t wait_for_all();
  void resolve_stamps(bool reached);

  std::array<HostTask, task_count> tasks_;
  std::size_t next_task_ = 0;
  std::deque<HostTask>* recorded_ = nullptr;
  HostFailure failure_;
  std::shared_ptr<DeviceClock> clock_;
  std::shared_ptr<const PollCallback> poll_;
  std::vector<Stamp> stamps_;  // all that exist, for reuse
  std::size_t stamped_ = 0;    // of stamps_: in use since the last synchronize()
  std::shared_ptr<CUstream_st> stream_;
};

// Returns the CUDA stream of a stream of a CudaDevice. Throws Error for a stream of another device.
cudaStream_t native(Stream& stream);

}  // namespace cnn::cuda
