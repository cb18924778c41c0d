#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace cnn::bench {

// Bytes that a step of that size takes; nothing if the backend cannot run it at all.
using BytesOfSize = std::function<std::optional<std::size_t>(std::int64_t size)>;

// A size that fits in `limit` bytes where the next one does not: memory is nearly linear, so the
// search guesses by lines from `start` and closes in until it has looked at both. 0: `least` does
// not fit. 1 <= least, start.
std::int64_t largest_size(std::size_t limit, std::int64_t least, std::int64_t start,
                          const BytesOfSize& bytes_of);

// The last size of [fits, fails) for which `runs` is true, found by halving, where it is true of
// `fits` and of no size from `fails` on.
std::int64_t last_that_runs(std::int64_t fits, std::int64_t fails,
                            const std::function<bool(std::int64_t size)>& runs);

}  // namespace cnn::bench
