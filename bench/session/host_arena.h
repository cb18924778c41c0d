#pragma once

#include <cstddef>
#include <span>

#include "runtime/device.h"

namespace cnn::bench {

// Host memory for what has left a device, one for all programs of a session, which take turns in
// it.
class HostArena {
 public:
  // The device must outlive it.
  explicit HostArena(Device& device) : device_(device) {}

  // All of it, of so many bytes at least. To make it larger ends what was given before: then no
  // executor may have any of it.
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
