#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>

namespace cnn::bench {

// Returns how many of the available bytes a run in host memory leaves to other processes: 512 MiB,
// or a tenth if that is less, as in a small container.
constexpr std::size_t kept_free(std::size_t available) {
  return std::min(std::size_t{512} << 20U, available / 10);
}

// Returns the bytes of host memory that this process may still allocate.
std::size_t host_memory_available();

// Prefaults new memory: writes zeros to each page from all compute threads, so that the kernel maps
// the pages before the run needs them. `available` returns the bytes that may still be allocated.
// Throws DoesNotFit if they run out midway, since the kernel would kill the process.
void prefault(std::span<std::byte> memory, const std::function<std::size_t()>& available);

}  // namespace cnn::bench
