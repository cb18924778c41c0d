#pragma once

#include <cstddef>
#include <cstdint>

namespace cnn::cuda {

// How many blocks of a kernel, given by its entry, the device of the calling thread holds at once:
// what its registers and shared memory allow, on all multiprocessors. Without a device as an H100
// has it where a thread takes 64 registers and a block has 256 threads.
std::int64_t blocks_at_once(const void* entry, int threads, std::size_t shared_bytes);

}  // namespace cnn::cuda
