#pragma once

#include <cstddef>
#include <cstdint>

namespace cnn::cuda {

// Returns how many blocks of a kernel, given by its entry, the calling thread's device holds at
// once on all multiprocessors, as registers and shared memory permit. Without a device it returns
// the number of an H100 for 64 registers per thread and 256 threads per block.
std::int64_t max_resident_blocks(const void* entry, int threads, std::size_t shared_bytes);

}  // namespace cnn::cuda
