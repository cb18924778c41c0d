#pragma once

#include <cstddef>
#include <string>

namespace cnn::tests::emulated {

// The attributes of every emulated device except its memory.
struct Description {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int clock_khz = 0, memory_clock_khz = 0;
  int cache_bytes = 1 << 20;  // small: the memory of an emulated device may be
  int threads_per_block = 0, threads_per_multiprocessor = 0, blocks_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  // Bytes of shared memory per block: the default and the largest that a kernel may request.
  std::size_t shared_bytes = 0, largest_shared_bytes = 0;
};

// Reads section "cudnn" of a machine file in the format of scripts/machines. Throws Error that
// names the file.
Description read_description(const std::string& file);

// Reads the file that CNN_EMULATED_MACHINE names, by default that of an H100.
Description described_machine();

}  // namespace cnn::tests::emulated
