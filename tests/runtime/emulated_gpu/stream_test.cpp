#include "runtime/cuda/stream.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/runtime/emulated_gpu/emulated_gpu.h"
#include "tests/support/error_of.h"

namespace cnn::tests::emulated {
namespace {

using EmulatedStream = EmulatedGpu;

TEST_F(EmulatedStream, QueuesWorkAndRunsNothingAtOnce) {
  *host = 5;
  {
    const Hold hold(stream);
    ASSERT_EQ(launch_increment(host, host, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    EXPECT_EQ(*host, 5);
  }
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(*host, 6);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "cudaErrorNotReady is not kept";
}

TEST_F(EmulatedStream, ReadsWhatAnotherMakesOnlyAfterAWaitForIt) {
  host[0] = 1;
  host[1] = 0;
  {
    const Hold hold(stream);
    ASSERT_EQ(launch_increment(&host[0], &host[0], stream), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
    ASSERT_EQ(launch_increment(&host[1], &host[0], other), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    EXPECT_EQ(host[1], 2) << "the wrong value that a missing wait gives";
    ASSERT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
    ASSERT_EQ(launch_increment(&host[1], &host[0], other), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(other), cudaErrorNotReady);
  }
  ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  EXPECT_EQ(host[1], 3);
}

TEST_F(EmulatedStream, RefusesKernelsOfAnotherDevice) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(launch_increment(host, host, stream), cudaErrorInvalidResourceHandle);
  expect_violation("on a stream of device 0 while device 1 was the current one");
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(EmulatedStream, TakesNoEventOfAnotherDevice) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaEvent_t foreign = make_event();
  EXPECT_EQ(cudaEventRecord(foreign, stream), cudaErrorInvalidResourceHandle);
  expect_violation("an event of device 1 was recorded on a stream of device 0");
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(EmulatedStream, IsNotUsedAfterItsEnd) {
  cudaStream_t gone = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&gone, cudaStreamNonBlocking, 0), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(gone), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, gone), cudaErrorInvalidResourceHandle);
  expect_violation("cudaEventRecord was given a stream that is destroyed");
}

TEST_F(EmulatedStream, RunsHostWorkThatCallsNothingOfTheRuntime) {
  const auto work = [](void* /*nothing*/) {
    int device = 0;
    cudaGetDevice(&device);
  };
  ASSERT_EQ(cudaLaunchHostFunc(stream, work, nullptr), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  expect_violation("cudaGetDevice was called by work on a stream");
}

TEST_F(EmulatedStream, RefusesALaunchThatADeviceCannotRun) {
  void (*kernel)(int) = [](int) {};
  const auto* entry = reinterpret_cast<const void*>(kernel);
  int value = 0;
  void* parameters[] = {&value};
  EXPECT_EQ(cudaLaunchKernel(entry, dim3(1), dim3(1), parameters, 0, stream),
            cudaErrorInvalidDeviceFunction)
      << "the kernel is not in the table";
  add_kernel(kernel);
  EXPECT_EQ(cudaLaunchKernel(entry, dim3(1), dim3(1025), parameters, 0, stream),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchKernel(entry, dim3(1, 65536), dim3(1), parameters, 0, stream),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchKernel(entry, dim3(1), dim3(1), parameters, 49153, stream),
            cudaErrorInvalidValue);
  ASSERT_EQ(cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, 49153),
            cudaSuccess);
  EXPECT_EQ(cudaLaunchKernel(entry, dim3(1), dim3(1), parameters, 49153, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

// A fault is sticky: every later call of the device fails, and the streams skip host work.
TEST_F(EmulatedStream, StaysBrokenAfterAFault) {
  void (*kernel)(int) = [](int) { throw std::runtime_error("the kernel broke"); };
  add_kernel(kernel);
  int value = 0;
  void* parameters[] = {&value};
  ASSERT_EQ(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1), parameters, 0,
                             stream),
            cudaSuccess);
  bool ran = false;
  cudaLaunchHostFunc(
      stream, [](void* flag) { *static_cast<bool*>(flag) = true; }, &ran);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  expect_violation("the kernel broke");
  EXPECT_FALSE(ran);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure) << "sticky";
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 16), cudaErrorLaunchFailure);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess) << "the other device still works";
  EXPECT_EQ(cudaMalloc(&more, 16), cudaSuccess);
  EXPECT_EQ(cudaFree(more), cudaSuccess);
}

// Broken devices skip host work, so that none of the pending tasks ever becomes free.
TEST_F(EmulatedStream, EndsTheWaitForAFreeHostTaskWhenTheDeviceBreaks) {
  void (*kernel)(int) = [](int) { throw std::runtime_error("the kernel broke"); };
  add_kernel(kernel);
  int value = 0;
  void* parameters[] = {&value};
  cuda::CudaStream broken(0, std::make_shared<cuda::DeviceClock>(),
                          std::make_shared<const cuda::PollCallback>());
  auto hold = std::make_unique<const Hold>(broken.native());
  ASSERT_EQ(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1), parameters, 0,
                             broken.native()),
            cudaSuccess);
  for (int task = 0; task < 256; ++task) {
    broken.host([] {});
  }
  std::future<std::string> error = std::async(
      std::launch::async, [&broken] { return error_of([&broken] { broken.host([] {}); }); });
  EXPECT_EQ(error.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  hold.reset();
  if (error.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
    static_cast<void>(std::fputs("the stream waits for ever\n", stderr));
    std::abort();
  }
  EXPECT_THAT(error.get(), testing::HasSubstr("cudaErrorLaunchFailure"));
  expect_violation("the kernel broke");
}

TEST_F(EmulatedStream, IsCountedWhileItIsAlive) {
  EXPECT_THAT(alive(), testing::Contains("2 streams"));
  EXPECT_THAT(alive(), testing::Contains("1 events"));
  EXPECT_THAT(alive(), testing::Contains("byte 0 of the 4096 bytes on device 0"));
}

}  // namespace
}  // namespace cnn::tests::emulated
