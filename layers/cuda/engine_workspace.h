#pragma once

#include <cstddef>
#include <cstdint>

namespace cnn::layers::cuda {

// Engines of cuDNN lay out their workspace themselves; this suits the widest access of a device,
// which is more than the 64 bytes of the memory plan.
inline constexpr std::size_t engine_alignment = 256;

// Returns what to plan so that `bytes` can be aligned; nothing for nothing.
inline std::size_t planned_for_engine(std::size_t bytes) {
  return bytes == 0 ? 0 : bytes + engine_alignment;
}

inline std::byte* aligned_for_engine(std::byte* data) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(data) % engine_alignment;
  return past == 0 ? data : data + (engine_alignment - past);
}

}  // namespace cnn::layers::cuda
