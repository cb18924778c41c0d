#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/cuda/runtime/driver.h"
#include "tests/support/cuda/runtime/kernels.h"
#include "tests/support/cuda/runtime/violation.h"

namespace cnn::tests::emulated {

// Fixture with two small emulated devices. It destroys the runtime objects of a test and keeps
// violations.
class EmulatedGpu : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    set_up({.devices = 2, .bytes_per_device = std::size_t{16} << 20U});
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    stream = make_stream();
    other = make_stream();
    event = make_event();
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&data), bytes), cudaSuccess);
    ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&host), bytes, cudaHostAllocPortable),
              cudaSuccess);
  }
  void TearDown() override {
    cudaSetDevice(1);  // a test may have broken device 0, which then frees nothing
    for (const auto& undo : undo_) {
      undo();
    }
    cudaFree(data);
    cudaFreeHost(host);
    cudaGetLastError();
    EXPECT_THAT(ExpectViolations::take(), testing::IsEmpty());
    set_up({});
    cudaSetDevice(0);
  }

  cudaStream_t make_stream() {
    cudaStream_t made = nullptr;
    EXPECT_EQ(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, 0), cudaSuccess);
    undo_.emplace_back([made] { cudaStreamDestroy(made); });
    return made;
  }
  cudaEvent_t make_event() {
    cudaEvent_t made = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&made, cudaEventDefault), cudaSuccess);
    undo_.emplace_back([made] { cudaEventDestroy(made); });
    return made;
  }

  // Launches a kernel that computes *to = *from + 1.
  static cudaError_t launch_increment(std::int32_t* to, const std::int32_t* from, cudaStream_t on) {
    add_kernel(increment);
    void* parameters[] = {&to, &from};
    return cudaLaunchKernel(reinterpret_cast<const void*>(increment), dim3(1), dim3(1), parameters,
                            0, on);
  }

  static constexpr std::size_t bytes = 4096;
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t event = nullptr;
  std::int32_t *data = nullptr, *host = nullptr;

 private:
  static void increment(std::int32_t* to, const std::int32_t* from) { *to = *from + 1; }

  ExpectViolations expecting_;
  std::vector<std::function<void()>> undo_;
};

// Expects exactly one violation, which contains these words.
inline void expect_violation(const std::string& words) {
  EXPECT_THAT(ExpectViolations::take(), testing::ElementsAre(testing::HasSubstr(words)));
}

}  // namespace cnn::tests::emulated
