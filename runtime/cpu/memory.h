#pragma once

#include <cstddef>
#include <filesystem>

namespace cnn {

// Returns the bytes that this process may still allocate: MemAvailable of the kernel, or less where
// a control group (version 1 or 2, its own or a parent) permits less. `root` is the directory of
// proc and sys. Throws Error if the files cannot be read.
std::size_t available_memory(const std::filesystem::path& root = "/");

}  // namespace cnn
