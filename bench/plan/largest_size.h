#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace cnn::bench {

// Returns the bytes of a step of that size; nothing if the backend cannot run it.
using BytesOfSize = std::function<std::optional<std::size_t>(std::int64_t size)>;

// Returns a size that fits in `limit` bytes while the next one does not. Memory is nearly linear,
// so the search extrapolates linearly from `start` and narrows the interval until it has tested
// both sizes. 0: `least` does not fit. Requires 1 <= least, start.
std::int64_t largest_size(std::size_t limit, std::int64_t least, std::int64_t start,
                          const BytesOfSize& bytes_of);

// Returns the last size of [fits, fails) for which `runs` is true, by bisection; `runs` is true at
// `fits` and false from `fails` on.
std::int64_t last_that_runs(std::int64_t fits, std::int64_t fails,
                            const std::function<bool(std::int64_t size)>& runs);

}  // namespace cnn::bench
