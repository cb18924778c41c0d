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

// Bytes per second that copies of lanes copy_out and copy_in move, as over a link between device
// and host; 0: as fast as memory is.
struct LinkSpeed {
  double out = 0, in = 0;  // of each direction
  // Of both directions together while both are busy, shared in proportion to their own; 0: they do
  // not disturb each other.
  double both = 0;
};

// Random times that each copy of lanes copy_out and copy_in sleeps before it begins, so that a
// missing wait shows in what is computed.
struct CopyJitter {
  std::chrono::microseconds longest{};  // 0: none
  unsigned seed = 0;
};

struct CpuOptions {
  std::size_t memory_limit = 0;  // bytes that allocate() gives at most in all; 0: no limit
  LinkSpeed link;                // shared by all streams of the device
  CopyJitter copy_jitter;
  std::vector<int> cpus;  // cores for the threads of the streams; empty: any
  // Called on the thread that runs a stream's work before the first of it, and whenever that is
  // another thread than before; to prepare a team of threads there.
  std::function<void(Lane)> on_stream_start;
  // Work of lane compute runs on the thread that feeds it, when it synchronises that stream or the
  // queue is full: no thread has to be woken, which takes as long as a small step, and a time
  // slice where others use the processor. Streams that wait for such a stream get on only while it
  // is synchronised, so synchronise it first.
  bool compute_on_caller = false;
  // With it: keeps the caller on this processor while it runs that work. As thread 0 of a team it
  // must not share a processor with another thread of the team.
  std::optional<int> caller_cpu;
};

// The processor as a device: a stream is a thread with a queue of fixed size, so lanes overlap. A
// call on a stream whose queue is full blocks. An error in a piece of work makes its stream skip
// all work, and so do streams that wait for it, until each is synchronised and throws it.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(CpuOptions options = {});

  std::string name() const override { return "cpu"; }
  // The least of what the machine has free, what control groups leave, and what is left of the
  // limit.
  std::size_t memory_bytes() const override;
  std::unique_ptr<Stream> make_stream(Lane lane) override;  // throws if it cannot pin the thread
  std::unique_ptr<Event> make_event() override;
  // Aligned to 64 bytes; a page or more lies between guard pages, see allocate_pages().
  Buffer allocate(std::size_t bytes) override;
  Buffer allocate_host(std::size_t bytes) override;  // does not count towards the limit

 private:
  CpuOptions options_;
  std::shared_ptr<Bus> bus_;
  std::shared_ptr<std::atomic<std::size_t>> allocated_;  // buffers may outlive the device
};

}  // namespace cnn
