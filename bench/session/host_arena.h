#pragma once

#include <cstddef>
#include <span>

#include "runtime/device.h"

namespace cnn::bench {

// Host memory for swapped tensors, shared by all programs of a session, which do not run
// concurrently.
class HostArena {
 public:
  // The device must outlive it.
  explicit HostArena(Device& device) : device_(device) {}

  // Returns the whole arena, of at least so many bytes. Growing it invalidates earlier spans: no
  // executor may then use them.
  std::span<std::byte> at_least(std::size_t bytes) {
    if (buffer_.bytes() < bytes) {
      buffer_ = {};
      buffer_ = device_.allocate_host(bytes);
    }
    return {buffer_.data(), buffer_.bytes()};
  }

 private:
  Device& device_;
  Buffer buffer_;
};

}  // namespace cnn::bench
