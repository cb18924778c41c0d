#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace cnn::bench {

// What a run that computes in the host's memory leaves to others, in bytes.
inline constexpr std::size_t kept_free = std::size_t{512} << 20U;

// Writes into each page of new memory, by all threads that compute, so that the system has given it
// before it is used. available: bytes that may still be taken; where these run out on the way, as
// others have taken them since they were counted, throws DoesNotFit instead of being killed. What
// is written is 0.
void secure_memory(std::span<std::byte> memory, const std::function<std::size_t()>& available);

}  // namespace cnn::bench
