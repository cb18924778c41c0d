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

// Checks the arenas of a plan whose steps run one by one: fills free bytes with 0xFF, which is a
// NaN, and compares a tensor that returns from the host with the bytes that left.
class MemoryWatch {
 public:
  // Takes the executor's arenas.
  MemoryWatch(const StepPlan& plan, Device& device, std::span<std::byte> arena,
              std::span<std::byte> host_arena);

  // Call before the first step of a run. stream: any that copies between device and host; every
  // stream must be idle.
  void begin(Stream& stream);
  // Call right after a step. Throws Error with the name of the tensor if the step fetched other
  // bytes than had left.
  void after(StepId step, Stream& stream);

 private:
  struct Range {
    std::size_t begin = 0, end = 0;
  };
  // A swapped tensor, in the step that copies it.
  struct Moved {
    TensorId tensor{};
    std::string name;
    bool leaves = false;
    std::span<const std::byte> bytes;  // on the device
  };
  // Indexed by StepId: ranges that become free at the end of the step.
  using Freed = std::vector<std::vector<Range>>;

  static Freed freed_of(std::span<const Block> blocks, std::size_t steps);
  void find_moved(const StepPlan& plan);
  void fill(Range range, Stream& stream);
  std::uint64_t checksum(std::span<const std::byte> bytes, Stream& stream);

  std::span<std::byte> arena_, host_arena_;
  Freed freed_, host_freed_;
  std::vector<std::optional<Moved>> moved_;              // by StepId
  Buffer pattern_, scratch_;                             // on the host
  std::vector<std::optional<std::uint64_t>> checksums_;  // by TensorId: of the latest offload
};

}  // namespace cnn
