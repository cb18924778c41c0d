#pragma once

#include <cstddef>
#include <cstdint>

namespace cnn::cuda {

// Occupancy: returns the number of blocks of a kernel that are resident on all multiprocessors of
// the calling thread's device at a time (one wave), as its registers and shared memory permit.
// Without a device it returns the number of an H100 for 64 registers per thread and 256 threads per
// block. Throws Error if the runtime fails.
std::int64_t max_resident_blocks(const void* entry, int threads, std::size_t shared_bytes);

}  // namespace cnn::cuda
