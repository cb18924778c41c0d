#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace cnn {

// Independent queues of work on a device. side: work that may overlap compute (weight gradients,
// branches of a network). disk: reads and writes of a file, between it and host memory.
enum class Lane : std::uint8_t { compute, side, copy_out, copy_in, communicate, disk };
inline constexpr std::size_t lane_count = 6;
std::string_view name_of(Lane lane);

// Move-only owner of device memory or of host memory that a device copies from at full speed.
class Buffer {
 public:
  using Release = std::function<void(std::byte*)>;

  Buffer() = default;
  Buffer(std::byte* data, std::size_t bytes, Release release)
      : data_(data), bytes_(bytes), release_(std::move(release)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) {
      release_(data_);
    }
  }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
  }

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Release release_;
};

// A point in a stream's order. Recording it again moves it.
class Event {
 public:
  virtual ~Event() = default;
};

// A queue: its work runs in order, and unordered against other streams unless an event orders it.
// No call allocates after the stream is made. The next synchronize() of the stream throws an error
// of its work.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;  // any direction
  // Runs work on the host in stream order. Keep its captures within 16 trivially copyable bytes
  // (two pointers): larger captures make std::function allocate.
  virtual void host(std::function<void()> work) = 0;
  virtual void record(Event& event) = 0;
  // Later work starts after the last record() made before this call.
  virtual void wait(Event& event) = 0;
  // Sets `at` to the moment when the queue reaches this point; valid after synchronize().
  virtual void stamp(std::chrono::steady_clock::time_point& at) {
    host([&at] { at = std::chrono::steady_clock::now(); });
  }
  virtual void synchronize() = 0;  // blocks until the queue is empty
};

// Work of several streams that is enqueued once and replayed as one unit.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay(Stream& stream) = 0;  // enqueues all of the work as one entry of this stream
};

// Makes streams, which order work and copy bytes, and allocates memory; kernels compute.
// Thread-safe except for its streams, each of which one thread at a time may feed.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  // Free for this process now; throws if it cannot be read.
  virtual std::size_t memory_bytes() const = 0;
  virtual std::unique_ptr<Stream> make_stream(Lane lane) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  virtual Buffer allocate(std::size_t bytes) = 0;  // throws Error that states the size asked for
  // Memory with the fastest copies to and from the device.
  virtual Buffer allocate_host(std::size_t bytes) = 0;
  // Calls enqueue() and records its work on `streams` instead of running it, for replay on the
  // first of them. A recording keeps addresses, not contents; enqueue() must record an event before
  // it waits for it. Returns null, without calling enqueue(), if this device cannot record.
  virtual std::unique_ptr<Recording> record(std::span<Stream* const> streams,
                                            const std::function<void()>& enqueue);
};

}  // namespace cnn
