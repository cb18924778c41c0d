// Tests the detector of races in global memory, which are undefined on a device. It must find each
// kind and must not report harmless patterns.

#include "tests/support/grid/global_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "runtime/cuda/launch.h"
#include "runtime/error.h"

namespace cnn::tests::grid {
namespace {

using cuda::launch;
using testing::HasSubstr;

constexpr unsigned threads = 64;

// Runs the kernel on an array of 1024 zeros. Returns the message of its Error, or "" if it ends
// well.
std::string error_of(void (*kernel)(int*), dim3 grid, dim3 block) {
  std::vector<int> values(1024);
  GridStream stream(Order{});
  try {
    launch(kernel, grid, block, 0, stream, values.data());
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

__device__ int place() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

__global__ void write_own(int* values) { values[place()] = 1; }

class GlobalRaces : public testing::Test {
 protected:
  void SetUp() override {
    EXPECT_EQ(error_of(write_own, 2, threads), "");
    if (!sees_global_memory()) {
      GTEST_SKIP() << "compiled without the hooks that show accesses to global memory";
    }
  }
};

__global__ void write_last_of_block(int* values) { values[blockIdx.x + threadIdx.x] = 7; }

TEST_F(GlobalRaces, ShowsTwoBlocksThatWriteOneElementEvenTheSameValue) {
  EXPECT_THAT(error_of(write_last_of_block, 2, threads),
              HasSubstr("block (1, 0, 0): thread (0, 0, 0) writes global memory that thread "
                        "(1, 0, 0) wrote in block (0, 0, 0) of the same launch"));
}

__global__ void read_of_block_before(int* values) {
  const int before = blockIdx.x == 0 ? 0 : values[place() - static_cast<int>(blockDim.x)];
  values[place()] = before + 1;
}

TEST_F(GlobalRaces, ShowsABlockThatReadsWhatAnotherWrote) {
  EXPECT_THAT(error_of(read_of_block_before, 2, threads),
              HasSubstr("reads global memory that thread (0, 0, 0) wrote in block (0, 0, 0)"));
}

__global__ void read_of_block_behind(int* values) {
  const int behind = values[place() + static_cast<int>(blockDim.x)];
  __syncthreads();
  values[place()] = behind + 1;
}

TEST_F(GlobalRaces, ShowsABlockThatWritesWhatAnotherRead) {
  EXPECT_THAT(error_of(read_of_block_behind, 2, threads),
              HasSubstr("writes global memory that thread (0, 0, 0) read in block (0, 0, 0)"));
}

__global__ void rotate(int* values) {
  const int at = place();
  values[at] = at;
  values[512 + at] = values[(at + 1) % static_cast<int>(blockDim.x)];
}

TEST_F(GlobalRaces, ShowsAnExchangeWithinABlockWithoutABarrier) {
  EXPECT_THAT(error_of(rotate, 1, threads), HasSubstr("with no barrier between"));
}

__global__ void rotate_with_barrier(int* values) {
  const int at = place();
  values[at] = at;
  __syncthreads();
  values[512 + at] = values[(at + 1) % static_cast<int>(blockDim.x)];
}

TEST_F(GlobalRaces, AllowsAnExchangeAcrossABarrier) {
  EXPECT_EQ(error_of(rotate_with_barrier, 1, threads), "");
}

__global__ void rotate_in_warps(int* values) {
  const int at = place();
  values[at] = at;
  __syncwarp();
  values[512 + at] = values[at / 32 * 32 + (at + 1) % 32];
}

TEST_F(GlobalRaces, AllowsAnExchangeAcrossABarrierOfTheWarp) {
  EXPECT_EQ(error_of(rotate_in_warps, 1, threads), "");
}

__global__ void rotate_between_warps(int* values) {
  const int at = place();
  values[at] = at;
  __syncwarp();
  values[512 + at] = values[(at + 32) % 64];
}

TEST_F(GlobalRaces, ShowsThatABarrierOfAWarpDoesNotOrderAnother) {
  EXPECT_THAT(error_of(rotate_between_warps, 1, threads), HasSubstr("with no barrier between"));
}

// The last of three readers also writes. The detector must not forget the first reader, which is in
// another block.
__global__ void read_first_write_last(int* values) {
  const int first = values[0];
  __syncthreads();
  if (blockIdx.x == 2 && threadIdx.x == 0) {
    values[0] = first + 1;
  }
}

TEST_F(GlobalRaces, RemembersReadersOfEarlierBlocks) {
  EXPECT_THAT(error_of(read_first_write_last, 3, 2),
              HasSubstr("block (2, 0, 0): thread (0, 0, 0) writes global memory that"));
}

__global__ void write_bytes(int* values) { reinterpret_cast<std::uint8_t*>(values)[place()] = 1; }

TEST_F(GlobalRaces, TellsNeighbouringBytesApart) { EXPECT_EQ(error_of(write_bytes, 5, 3), ""); }

struct alignas(16) Four {
  int element[4];
};
__global__ void write_wide(int* values) {
  reinterpret_cast<Four*>(values)[place()] = {{1, 2, 3, 4}};
  if (place() == 3) {
    values[19] = 5;
  }
}

TEST_F(GlobalRaces, SeesTheWholeOfAWideAccess) {
  EXPECT_THAT(error_of(write_wide, 2, 4), HasSubstr("(1, 0, 0): thread (0, 0, 0) writes"));
}

__global__ void count(int* values) { atomicAdd(&values[0], 1); }
__global__ void count_and_look(int* values) {
  atomicAdd(&values[0], 1);
  values[1 + place()] = values[0];
}

TEST_F(GlobalRaces, AllowsAtomicsToMeetButNotToBeReadMeanwhile) {
  EXPECT_EQ(error_of(count, 3, threads), "");
  EXPECT_THAT(error_of(count_and_look, 1, threads), HasSubstr("with no barrier between"));
}

TEST_F(GlobalRaces, ForgetsAllWithTheLaunch) {
  std::vector<int> values(1024);
  GridStream stream(Order{});
  launch(write_own, 2, threads, 0, stream, values.data());
  launch(write_own, threads, 2, 0, stream, values.data());
  EXPECT_EQ(values[2 * threads - 1], 1);
}

}  // namespace
}  // namespace cnn::tests::grid
