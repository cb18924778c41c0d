#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/memory_plan.h"

namespace cnn {

struct StepPlan;

// Watches over the arenas of a plan whose steps run one by one: bytes that no block holds are
// filled with 0xFF, which is a NaN, as soon as they are free, and what comes back from the host is
// compared with what left.
class MemoryWatch {
 public:
  // Arenas as the executor's.
  MemoryWatch(const StepPlan& plan, Device& device, std::span<std::byte> arena,
              std::span<std::byte> host_arena);

  // Before the first step of a run. stream: any that copies between device and host; nothing may be
  // queued on any.
  void begin(Stream& stream);
  // Right after a step. Throws Error if it brought back other bytes than had left, with the name of
  // the tensor.
  void after(StepId step, Stream& stream);

 private:
  struct Range {
    std::size_t begin = 0, end = 0;
  };
  // A swapped tensor, in the step that moves it.
  struct Moved {
    TensorId tensor{};
    std::string name;
    bool leaves = false;
    std::span<const std::byte> bytes;  // on the device
  };
  using Freed = std::vector<std::vector<Range>>;  // by StepId: what is free from its end on

  static Freed freed_of(std::span<const Block> blocks, std::size_t steps);
  void find_moved(const StepPlan& plan);
  void fill(Range range, Stream& stream);
  std::uint64_t checksum(std::span<const std::byte> bytes, Stream& stream);

  std::span<std::byte> arena_, host_arena_;
  Freed freed_, host_freed_;
  std::vector<std::optional<Moved>> moved_;              // by StepId
  Buffer pattern_, scratch_;                             // on the host
  std::vector<std::optional<std::uint64_t>> checksums_;  // by TensorId: of what left last
};

}  // namespace cnn
