#pragma once

#include <cstddef>
#include <span>

#include "runtime/device.h"
#include "runtime/divide_up.h"
#include "runtime/memory_plan.h"

namespace cnn::bench {

// Host memory for swapped tensors, shared by all programs of a session, which do not run
// concurrently.
class HostArena {
 public:
  // unit: the size of the arena is a multiple of it. The device must outlive the arena.
  explicit HostArena(Device& device, std::size_t unit = alignment) : device_(device), unit_(unit) {}

  // Returns the whole arena, of at least so many bytes. Growing it invalidates earlier spans: no
  // executor may then use them.
  std::span<std::byte> at_least(std::size_t bytes) {
    if (buffer_.bytes() < bytes) {
      buffer_ = {};
      buffer_ = device_.allocate_host(round_up(bytes, unit_));
    }
    return {buffer_.data(), buffer_.bytes()};
  }

 private:
  Device& device_;
  std::size_t unit_;
  Buffer buffer_;
};

}  // namespace cnn::bench
