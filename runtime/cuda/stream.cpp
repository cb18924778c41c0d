#include "runtime/cuda/stream.h"

#include <thread>
#include <utility>

#include "runtime/cuda/error.h"

namespace cnn::cuda {
namespace {

template <class Wanted, class Base>
Wanted& as_cuda(Base& object) {
  auto* wanted = dynamic_cast<Wanted*>(&object);
  check(wanted != nullptr, "a stream or event of another device was given to CUDA");
  return *wanted;
}

void run(HostTask& task) {
  if (task.failure->any()) {
    return;
  }
  try {
    task.work();
  } catch (...) {
    task.failure->keep(std::current_exception());
  }
}

void run_once(void* argument) {
  auto& task = *static_cast<HostTask*>(argument);
  run(task);
  task.pending.store(false, std::memory_order_release);
}

void run_again(void* argument) { run(*static_cast<HostTask*>(argument)); }

}  // namespace

EventHandle make_event(unsigned flags) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags));
  return EventHandle(event);
}

void DeviceClock::acquire(cudaStream_t stream) {
  const std::scoped_lock lock(mutex_);
  if (acquired_ == 0) {
    if (origin_ == nullptr) {
      origin_ = make_event(cudaEventDefault);
    }
    check(cudaEventRecord(origin_.get(), stream));
    check(cudaEventSynchronize(origin_.get()));
    origin_time_ = std::chrono::steady_clock::now();
  }
  ++acquired_;
}

DeviceClock::TimePoint DeviceClock::time_of(cudaEvent_t reached) const {
  const std::scoped_lock lock(mutex_);
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, origin_.get(), reached));
  const std::chrono::duration<double, std::milli> elapsed(milliseconds);
  return origin_time_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(elapsed);
}

void DeviceClock::release(std::size_t events) {
  const std::scoped_lock lock(mutex_);
  acquired_ -= events;
}

void HostFailure::keep(std::exception_ptr error) {
  const std::scoped_lock lock(mutex_);
  error_ = error_ ? error_ : std::move(error);
}

bool HostFailure::any() const {
  const std::scoped_lock lock(mutex_);
  return error_ != nullptr;
}

void HostFailure::rethrow() {
  std::exception_ptr error;
  {
    const std::scoped_lock lock(mutex_);
    error = std::exchange(error_, nullptr);
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

CudaStream::CudaStream(int priority, std::shared_ptr<DeviceClock> clock,
                       std::shared_ptr<const PollCallback> poll)
    : clock_(std::move(clock)), poll_(std::move(poll)) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
  stream_.reset(stream, Destroy<cudaStreamDestroy>());
}

CudaStream::~CudaStream() {
  static_cast<void>(cudaStreamSynchronize(stream_.get()));
  clock_->release(stamped_);
}

void CudaStream::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.get()));
  }
}

template <class Condition>
cudaError_t CudaStream::wait_until(const Condition& is_met) {
  cudaError_t status = cudaStreamQuery(stream_.get());
  while (status == cudaErrorNotReady && !is_met()) {
    if (*poll_) {
      (*poll_)(true);
    }
    status = cudaStreamQuery(stream_.get());
  }
  if (*poll_) {
    (*poll_)(false);
  }
  return status;
}

// CUDA never runs the host work behind an error of the device, and a lost rank may keep all work of
// the stream waiting. So the wait checks the stream's status, and polls like synchronize().
HostTask& CudaStream::free_task() {
  HostTask& task = tasks_[next_task_];
  const auto is_free = [&task] { return !task.pending.load(std::memory_order_acquire); };
  if (!is_free()) {
    const cudaError_t status = wait_until([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(20));  // leaves the processor to others
      return is_free();
    });
    check(status == cudaErrorNotReady ? cudaSuccess : status);
  }
  next_task_ = (next_task_ + 1) % task_count;
  task.pending.store(true, std::memory_order_relaxed);
  return task;
}

void CudaStream::host(std::function<void()> work) {
  const bool once = recorded_ == nullptr;
  HostTask& task = once ? free_task() : recorded_->emplace_back();
  task.work = std::move(work);
  task.failure = &failure_;
  const cudaError_t status = cudaLaunchHostFunc(stream_.get(), once ? run_once : run_again, &task);
  if (status != cudaSuccess) {
    task.pending = false;
  }
  check(status);
}

void CudaStream::record(Event& event) {
  check(cudaEventRecord(as_cuda<CudaEvent>(event).native(), stream_.get()));
}

void CudaStream::wait(Event& event) {
  check(cudaStreamWaitEvent(stream_.get(), as_cuda<CudaEvent>(event).native(), 0));
}

void CudaStream::stamp(std::chrono::steady_clock::time_point& at) {
  if (stamped_ == stamps_.size()) {
    stamps_.push_back({.event = make_event(cudaEventDefault)});
  }
  clock_->acquire(stream_.get());
  Stamp& stamp = stamps_[stamped_++];
  stamp.at = &at;
  check(cudaEventRecord(stamp.event.get(), stream_.get()));
}

void CudaStream::resolve_stamps(bool reached) {
  const std::size_t stamped = std::exchange(stamped_, 0);
  for (std::size_t s = 0; reached && s < stamped; ++s) {
    *stamps_[s].at = clock_->time_of(stamps_[s].event.get());
  }
  clock_->release(stamped);
}

// Waits for all work of the stream. Without a callback it blocks in the runtime; with one it polls,
// so that the wait ends at most one call of the callback late.
cudaError_t CudaStream::wait_for_all() {
  return *poll_ ? wait_until([] { return false; }) : cudaStreamSynchronize(stream_.get());
}

void CudaStream::synchronize() {
  cudaError_t status = cudaSuccess;
  try {
    status = wait_for_all();
  } catch (...) {
    // The callback has ended the kernels that would wait for ever. Other queued work still accesses
    // memory that the caller may free next.
    static_cast<void>(cudaStreamSynchronize(stream_.get()));
    resolve_stamps(false);
    throw;
  }
  resolve_stamps(status == cudaSuccess);
  check(status);
  failure_.rethrow();
}

cudaStream_t native(Stream& stream) { return as_cuda<CudaStream>(stream).native(); }

}  // namespace cnn::cuda
