#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>

namespace cnn::bench {

// Returns what a run that computes in the host's memory leaves to others, of the bytes that are
// available: 512 MiB, or a tenth where that is less, as in a small container.
constexpr std::size_t kept_free(std::size_t available) {
  return std::min(std::size_t{512} << 20U, available / 10);
}

// Bytes of the host's memory that this process may still take.
std::size_t host_memory_available();

// Writes into each page of new memory, by all threads that compute, so that the system has given it
// before it is used. available: bytes that may still be taken; where these run out on the way, as
// others have taken them since they were counted, throws DoesNotFit instead of being killed. The
// bytes become 0.
void secure_memory(std::span<std::byte> memory, const std::function<std::size_t()>& available);

}  // namespace cnn::bench
