#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace cnn {

class Bus;

// Bandwidths of a simulated link between device and host, for lanes copy_out and copy_in: bytes per
// second; 0: as fast as memory.
struct LinkSpeed {
  double out = 0, in = 0;  // each direction alone
  // Both directions together while both are busy, shared in proportion to `out` and `in`; 0: the
  // directions do not slow each other down.
  double both = 0;
};

// Random delays before each copy of lanes copy_out and copy_in: a missing wait then shows in the
// results.
struct CopyJitter {
  std::chrono::microseconds longest{};  // 0: none
  unsigned seed = 0;
};

struct CpuOptions {
  std::size_t memory_limit = 0;  // bytes that allocate() returns at most in total; 0: no limit
  LinkSpeed link;                // shared by all streams of the device
  CopyJitter copy_jitter;
  std::vector<int> cpus;  // cores for the threads of the streams; empty: any
  // Called on the thread that runs a stream's work, before its first work and whenever another
  // thread takes over; prepares a team of threads there.
  std::function<void(Lane)> on_stream_start;
  // Runs work of lane compute on the thread that feeds it, when that thread synchronises the stream
  // or the queue is full. Waking a thread takes as long as a small step, and a time slice where
  // other processes use the processor. Streams that wait for such a stream progress only while the
  // feeder synchronises it, so synchronise the compute stream first.
  bool compute_on_caller = false;
  // With compute_on_caller: pins the caller to this processor while it runs that work. The caller
  // is thread 0 of a team and must not share a processor with another thread of the team.
  std::optional<int> caller_cpu;
};

// The processor as a device: a stream is a thread with a queue of fixed size, so lanes overlap. A
// call on a stream whose queue is full blocks. An error in a piece of work makes its stream, and
// every stream that waits for it, skip all work until each is synchronised and throws the error.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(CpuOptions options = {});

  std::string name() const override { return "cpu"; }
  // Returns the least of the machine's free memory, the rest that control groups allow, and the
  // rest of the limit, in bytes.
  std::size_t memory_bytes() const override;
  std::unique_ptr<Stream> make_stream(Lane lane) override;  // throws if it cannot pin the thread
  std::unique_ptr<Event> make_event() override;
  // Aligned to 64 bytes; a buffer of a page or more lies between guard pages, see allocate_pages().
  Buffer allocate(std::size_t bytes) override;
  Buffer allocate_host(std::size_t bytes) override;  // does not count towards the limit

 private:
  CpuOptions options_;
  std::shared_ptr<Bus> bus_;
  std::shared_ptr<std::atomic<std::size_t>> allocated_;  // buffers may outlive the device
};

}  // namespace cnn
