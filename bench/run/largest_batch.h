#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace cnn::bench {

// Bytes that a step with so many examples takes; nothing if the backend cannot run it at all.
using BytesOfBatch = std::function<std::optional<std::size_t>(std::int64_t batch)>;

// The last batch found to fit in `limit` bytes: memory is nearly linear in the batch, so the search
// interpolates from `start` and closes in. 0: not even one example fits. start: at least 1.
std::int64_t largest_batch(std::size_t limit, std::int64_t start, const BytesOfBatch& bytes_of);

}  // namespace cnn::bench
