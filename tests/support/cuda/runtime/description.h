#pragma once

#include <cstddef>
#include <string>

namespace cnn::tests::emulated {

// The attributes of every emulated device, but for its memory.
struct Description {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int clock_khz = 0, memory_clock_khz = 0;
  int threads_per_block = 0, threads_per_multiprocessor = 0, blocks_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  // Bytes of a block: without asking, and the most that a kernel may ask for.
  std::size_t shared_bytes = 0, largest_shared_bytes = 0;
};

// Reads section "cudnn" of a machine's file, which has the form of those in scripts/machines.
// Throws Error that names the file.
Description read_description(const std::string& file);

// The description in the file that CNN_EMULATED_MACHINE names, by default the one of an H100.
Description described_machine();

}  // namespace cnn::tests::emulated
