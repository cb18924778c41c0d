#include "runtime/cpu/stream.h"

#include <string>
#include <utility>

#include "runtime/cpu/cpu_mask.h"
#include "runtime/error.h"

namespace cnn {

void CpuEvent::reach(std::uint64_t record, const std::exception_ptr& error) {
  {
    std::unique_lock lock(mutex_);
    // Records complete in order even if two streams make them.
    changed_.wait(lock, [&] { return reached_ == record - 1; });
    reached_ = record;
    error_ = error;
  }
  changed_.notify_all();
}

std::exception_ptr CpuEvent::wait(std::uint64_t record) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return reached_ >= record; });
  return error_;
}

CpuStream::CpuStream(Runner runner, const CpuOptions& options, std::function<void()> prepare,
                     Copier copier)
    : runner_(runner),
      caller_cpu_(options.caller_cpu),
      prepare_(std::move(prepare)),
      copier_(std::move(copier)) {
  if (runner_ == Runner::feeder) {
    return;
  }
  thread_ = std::thread([this] { loop(); });
  try {
    pin(options.cpus);
  } catch (...) {
    free_entry().kind = Kind::stop;
    publish();
    thread_.join();
    throw;
  }
}

CpuStream::~CpuStream() {
  if (runner_ == Runner::feeder) {
    run_all();
    return;
  }
  free_entry().kind = Kind::stop;
  publish();
  thread_.join();
}

void CpuStream::pin(const std::vector<int>& cpus) {
  if (cpus.empty()) {
    return;
  }
  CpuMask mask;
  std::string list;
  for (const int cpu : cpus) {
    check(cpu >= 0 && cpu < CpuMask::max_cpus, "a core's number is out of range");
    mask.add(cpu);
    list += (list.empty() ? "" : ",") + std::to_string(cpu);
  }
  if (!mask.bind(thread_.native_handle())) {
    throw Error("cannot pin a stream to cores " + list + ": does this machine have them?");
  }
}

CpuStream::Entry& CpuStream::free_entry() {
  const std::uint32_t next = filled_.load(std::memory_order_relaxed);
  for (std::uint32_t done = done_.load(std::memory_order_acquire); next - done == capacity;
       done = done_.load(std::memory_order_acquire)) {
    if (runner_ == Runner::feeder) {
      run_next();
    } else {
      done_.wait(done, std::memory_order_acquire);
    }
  }
  return ring_[next % capacity];
}

void CpuStream::publish() {
  filled_.fetch_add(1, std::memory_order_release);
  filled_.notify_one();
}

void CpuStream::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  Entry& entry = free_entry();
  entry.kind = Kind::copy;
  entry.to = to;
  entry.from = from;
  entry.bytes = bytes;
  publish();
}

void CpuStream::host(std::function<void()> work) {
  Entry& entry = free_entry();
  entry.kind = Kind::host;
  entry.work = std::move(work);
  publish();
}

void CpuStream::record(Event& event) {
  Entry& entry = free_entry();
  entry.kind = Kind::record;
  entry.event = &dynamic_cast<CpuEvent&>(event);
  entry.record = entry.event->add_record();
  publish();
}

void CpuStream::wait(Event& event) {
  Entry& entry = free_entry();
  entry.kind = Kind::wait;
  entry.event = &dynamic_cast<CpuEvent&>(event);
  entry.record = entry.event->records();
  publish();
}

void CpuStream::synchronize() {
  if (runner_ == Runner::feeder) {
    run_all();
  }
  const std::uint32_t last = filled_.load(std::memory_order_relaxed);
  for (std::uint32_t done = done_.load(std::memory_order_acquire); done != last;
       done = done_.load(std::memory_order_acquire)) {
    done_.wait(done, std::memory_order_acquire);
  }
  if (error_) {
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void CpuStream::loop() {
  for (std::uint32_t next = 0;; ++next) {
    filled_.wait(next, std::memory_order_acquire);
    Entry& entry = ring_[next % capacity];
    const bool stop = entry.kind == Kind::stop;
    perform(entry);
    done_.store(next + 1, std::memory_order_release);
    done_.notify_all();
    if (stop) {
      return;
    }
  }
}

void CpuStream::run_all() {
  std::optional<PinnedCaller> pinned;
  if (caller_cpu_) {
    pinned.emplace(*caller_cpu_);
  }
  while (done_.load(std::memory_order_relaxed) != filled_.load(std::memory_order_relaxed)) {
    run_next();
  }
}

void CpuStream::run_next() {
  const std::uint32_t next = done_.load(std::memory_order_relaxed);
  perform(ring_[next % capacity]);
  done_.store(next + 1, std::memory_order_release);
}

void CpuStream::perform(Entry& entry) {
  try {
    if (prepare_ && prepared_ != std::this_thread::get_id()) {
      prepared_ = std::this_thread::get_id();
      prepare_();
    }
    switch (entry.kind) {
      case Kind::copy:
        if (!error_) {
          copier_.copy(entry.to, entry.from, entry.bytes);
        }
        break;
      case Kind::host:
        if (!error_) {
          entry.work();
        }
        entry.work = nullptr;
        break;
      case Kind::record:  // in every case: waiting streams must not hang
        entry.event->reach(entry.record, error_);
        break;
      case Kind::wait:
        if (const std::exception_ptr error = entry.event->wait(entry.record); error && !error_) {
          error_ = error;
        }
        break;
      case Kind::stop:
        break;
    }
  } catch (...) {
    error_ = std::current_exception();
  }
}

}  // namespace cnn
