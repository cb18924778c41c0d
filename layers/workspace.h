#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/divide_up.h"

namespace cnn::layers {

// A bump allocator over a kernel's workspace: hands out arrays one after another, each aligned to
// 64 bytes. Constructed without memory it returns null pointers and only counts the bytes.
class BumpAllocator {
 public:
  BumpAllocator() = default;
  explicit BumpAllocator(std::span<std::byte> workspace) : data_(workspace.data()) {}

  template <class T>
  T* take(std::int64_t count) {
    std::byte* const at = data_ == nullptr ? nullptr : data_ + bytes_;
    bytes_ += round_up(static_cast<std::size_t>(count) * sizeof(T), 64);
    return reinterpret_cast<T*>(at);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace cnn::layers
