#pragma once

#include <cstddef>
#include <cstdint>

namespace cnn::layers::cuda {

// Engines of cuDNN lay out their workspace themselves. They get this alignment, which suits the
// widest access of a device, instead of the 64 bytes of the memory plan.
inline constexpr std::size_t engine_alignment = 256;

// Returns the bytes to plan so that a workspace of `bytes` can be aligned; 0 for 0.
inline std::size_t planned_for_engine(std::size_t bytes) {
  return bytes == 0 ? 0 : bytes + engine_alignment;
}

// Returns the first aligned address of a planned workspace.
inline std::byte* aligned_for_engine(std::byte* data) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(data) % engine_alignment;
  return past == 0 ? data : data + (engine_alignment - past);
}

}  // namespace cnn::layers::cuda
