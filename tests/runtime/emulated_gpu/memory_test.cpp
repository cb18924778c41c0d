#include <cmath>
#include <cstring>

#include "runtime/cuda/device.h"
#include "runtime/error.h"
#include "tests/runtime/cuda/kernels.h"
#include "tests/runtime/emulated_gpu/emulated_gpu.h"
#include "tests/support/grid/fiber.h"

namespace cnn::tests::emulated {
namespace {

using EmulatedMemory = EmulatedGpu;
using EmulatedMemoryDeathTest = EmulatedGpu;

TEST_F(EmulatedMemory, IsBounded) {
  void* much = nullptr;
  EXPECT_EQ(cudaMalloc(&much, std::size_t{17} << 20U), cudaErrorMemoryAllocation);
  std::size_t available = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&available, &total), cudaSuccess);
  EXPECT_EQ(total, std::size_t{16} << 20U);
  EXPECT_EQ(available, total - bytes);
  EXPECT_EQ(cudaMalloc(&much, available), cudaSuccess);
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaFree(much), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
}

TEST_F(EmulatedMemory, IsNotANumberUntilItIsWritten) {
  float value = 0;
  ASSERT_EQ(cudaMemcpyAsync(&value, data, sizeof(value), cudaMemcpyDefault, stream), cudaSuccess);
  EXPECT_TRUE(std::isnan(value));
}

TEST_F(EmulatedMemory, IsNotFreedWhileQueuedWorkUsesIt) {
  std::int32_t* used = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&used), bytes), cudaSuccess);
  {
    const Hold hold(stream);
    ASSERT_EQ(launch_increment(used, host, stream), cudaSuccess);
    EXPECT_EQ(cudaFree(used), cudaErrorInvalidValue);
  }
  expect_violation("byte 0 of the 4096 bytes on device 0, which queued work uses");
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(used), cudaSuccess);
}

TEST_F(EmulatedMemory, KeepsHostMemoryPinnedWhileQueuedWorkUsesIt) {
  std::vector<std::int32_t> numbers(1024);
  ASSERT_EQ(cudaHostRegister(numbers.data(), bytes, cudaHostRegisterPortable), cudaSuccess);
  {
    const Hold hold(stream);
    ASSERT_EQ(cudaMemcpyAsync(data, numbers.data(), bytes, cudaMemcpyDefault, stream), cudaSuccess);
    EXPECT_EQ(cudaHostUnregister(numbers.data()), cudaErrorInvalidValue);
  }
  expect_violation("which queued work uses");
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(numbers.data()), cudaSuccess);
}

TEST_F(EmulatedMemory, IsRegisteredOnce) {
  std::vector<std::int32_t> numbers(1024);
  ASSERT_EQ(cudaHostRegister(numbers.data(), bytes, cudaHostRegisterPortable), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(numbers.data() + 1, 4, cudaHostRegisterPortable),
            cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaHostUnregister(numbers.data()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(numbers.data()), cudaErrorInvalidValue);
  expect_violation("host memory that is not pinned, which is no such block's beginning");
}

TEST_F(EmulatedMemory, IsFreedByItsFirstByteOnly) {
  EXPECT_EQ(cudaFree(data + 1), cudaErrorInvalidValue);
  expect_violation("byte 4 of the 4096 bytes on device 0");
}

TEST_F(EmulatedMemory, IsCopiedWithinItsBlocks) {
  EXPECT_EQ(cudaMemcpyAsync(data, host, bytes + 1, cudaMemcpyDefault, stream),
            cudaErrorInvalidValue);
  expect_violation("4097 bytes leaves the block");
  EXPECT_EQ(cudaMemcpyAsync(data + 1024, host, 4, cudaMemcpyDefault, stream),
            cudaErrorInvalidValue);
  expect_violation("at which no block is alive");
}

TEST_F(EmulatedMemory, TellsOfBytesWrittenBehindABlock) {
  char* small = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&small), 10), cudaSuccess);
  struct Range {
    char* at;
  } range{small + 10};
  const auto write = [](void* argument) { *static_cast<Range*>(argument)->at = 0; };
  ASSERT_EQ(cudaLaunchHostFunc(stream, write, &range), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(small), cudaSuccess);
  expect_violation("wrote past the end of byte 0 of the 10 bytes on device 0");
}

TEST_F(EmulatedMemoryDeathTest, ForbidsHostAccessToDeviceMemory) { EXPECT_DEATH(*data = 1, ""); }

TEST_F(EmulatedMemory, ForbidsKernelAccessToUnpinnedHostMemory) {
  if (grid::address_sanitizer_is_on()) {
    GTEST_SKIP() << "that build compiles kernels without hooks";
  }
  cnn::cuda::CudaDevice device;
  std::vector<std::int32_t> numbers(4);
  {
    const auto lane = device.make_stream(Lane::compute);
    cnn::cuda::tests::scale_and_add_one(*lane, numbers.data(), 4, 1);
    EXPECT_THROW(lane->synchronize(), Error);
  }
  expect_violation("reads host memory that is not pinned");
}

TEST_F(EmulatedMemoryDeathTest, BehindABlockIsClosedToKernels) {
  EXPECT_DEATH(
      {
        cnn::cuda::CudaDevice device;
        const auto lane = device.make_stream(Lane::compute);
        const Buffer block = device.allocate(4096);
        cnn::cuda::tests::scale_and_add_one(
            *lane, reinterpret_cast<std::int32_t*>(block.data() + 4096), 1, 1);
        lane->synchronize();
      },
      "");
}

// Kernels run on fiber stacks, which the emulation registers with the sanitizer.
TEST_F(EmulatedMemoryDeathTest, BehindARegisteredBlockIsWatchedByTheAddressSanitizer) {
  if (!grid::address_sanitizer_is_on()) {
    GTEST_SKIP() << "this build has no AddressSanitizer";
  }
  EXPECT_DEATH(
      {
        std::vector<std::int32_t> numbers(1024);
        cudaHostRegister(numbers.data(), bytes, cudaHostRegisterPortable);
        cnn::cuda::CudaDevice device;
        const auto lane = device.make_stream(Lane::compute);
        cnn::cuda::tests::scale_and_add_one(*lane, numbers.data() + 1024, 1, 1);
        lane->synchronize();
      },
      "heap-buffer-overflow");
}

}  // namespace
}  // namespace cnn::tests::emulated
