#pragma once

#include <cstddef>
#include <filesystem>

namespace cnn {

// Bytes this process may still take: what the kernel calls available, or less where a control group
// (version 1 or 2, this one or one above it) leaves less. `root` is where proc and sys lie. Throws
// Error if it cannot be read.
std::size_t available_memory(const std::filesystem::path& root = "/");

}  // namespace cnn
