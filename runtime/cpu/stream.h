#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/cpu/bus.h"
#include "runtime/cpu/device.h"
#include "runtime/device.h"

namespace cnn {

// An event that counts its records. A wait is for the records made before it, so it never ends too
// early.
class CpuEvent final : public Event {
 public:
  // Called by the thread that feeds a stream.
  std::uint64_t add_record() { return ++records_; }
  std::uint64_t records() const { return records_; }

  // Called by the threads of streams. error: why the work before the record was skipped, or null.
  void reach(std::uint64_t record, const std::exception_ptr& error);
  // Blocks until that record is reached; returns the record's error.
  std::exception_ptr wait(std::uint64_t record);

 private:
  std::atomic<std::uint64_t> records_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t reached_ = 0;  // guarded by mutex_, as is error_
  std::exception_ptr error_;
};

// The thread that runs the entries of a stream: a thread of the stream as entries arrive, or the
// thread that feeds it, once it synchronises or the ring is full.
enum class Runner : std::uint8_t { own_thread, feeder };

// A ring buffer of entries; see Stream and CpuDevice.
class CpuStream final : public Stream {
 public:
  // options: of the device; lists the cores for the thread. prepare: called on the thread that runs
  // the entries, before the first entry and whenever another thread takes over; may be empty.
  CpuStream(Runner runner, const CpuOptions& options, std::function<void()> prepare, Copier copier);
  ~CpuStream() override;  // finishes what is queued
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  void host(std::function<void()> work) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  void synchronize() override;

 private:
  enum class Kind : std::uint8_t { copy, host, record, wait, stop };
  struct Entry {
    Kind kind = Kind::stop;
    std::byte* to = nullptr;  // copy
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    std::function<void()> work;  // host
    CpuEvent* event = nullptr;   // record, wait
    std::uint64_t record = 0;
  };
  static constexpr std::uint32_t capacity = 1024;  // a power of two: counters wrap around

  void pin(const std::vector<int>& cpus);
  // The next to fill; blocks, or runs the oldest entry, while the ring is full.
  Entry& free_entry();
  void publish();   // hands the entry to the runner
  void loop();      // of own_thread
  void run_all();   // of the feeder
  void run_next();  // of the feeder; the ring must not be empty
  void perform(Entry& entry);

  Runner runner_;
  std::optional<int> caller_cpu_;
  std::function<void()> prepare_;
  Copier copier_;
  std::thread::id prepared_;  // the thread that prepare_ was last called on
  std::array<Entry, capacity> ring_;
  std::atomic<std::uint32_t> filled_ = 0;  // entries ever filled, modulo 2^32
  std::atomic<std::uint32_t> done_ = 0;    // entries ever done
  std::exception_ptr error_;               // read by the caller only once all entries are done
  std::thread thread_;                     // if runner_ is own_thread
};

}  // namespace cnn
