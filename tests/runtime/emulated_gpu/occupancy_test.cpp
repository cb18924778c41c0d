#include "runtime/cuda/occupancy.h"

#include <gtest/gtest.h>

#include "tests/runtime/emulated_gpu/emulated_gpu.h"
#include "tests/support/files.h"

namespace cnn::tests::emulated {
namespace {

// A device of seven multiprocessors, each of which holds 1024 threads of 64 registers, three
// blocks at most, and 4096 bytes of shared memory.
TEST(BlocksAtOnce, CountsTheBlocksOfAllMultiprocessors) {
  const TemporaryFolder folder;
  folder.write("small.json", R"({"cudnn": {"deviceName": "Small", "deviceVer": 860,
      "multiProcessorCount": 7, "smClockRateKHz": 1500000, "memClockRateKHz": 900000,
      "maxThreadsPerBlock": 512, "maxThreadsPerSM": 1536, "maxCtasPerSM": 3,
      "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 1024,
      "maxSharedMemoryPerBlockOptin": 4096}})");
  set_up({.description = read_description(folder / "small.json")});
  EXPECT_EQ(cnn::cuda::max_resident_blocks(nullptr, 512, 0), 7 * 2) << "as registers permit";
  EXPECT_EQ(cnn::cuda::max_resident_blocks(nullptr, 128, 0), 7 * 3) << "as the block limit permits";
  EXPECT_EQ(cnn::cuda::max_resident_blocks(nullptr, 128, 4096), 7 * 1)
      << "as shared memory permits";
  set_up({});
}

TEST(BlocksAtOnce, HasFourBlocksOf256ThreadsPerMultiprocessorOfAnH100) {
  set_up({});
  EXPECT_EQ(cnn::cuda::max_resident_blocks(nullptr, 256, 0), 132 * 4);
}

}  // namespace
}  // namespace cnn::tests::emulated
