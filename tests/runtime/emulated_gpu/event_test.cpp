#include <thread>

#include "tests/runtime/emulated_gpu/emulated_gpu.h"

namespace cnn::tests::emulated {
namespace {

using EmulatedEvent = EmulatedGpu;

TEST_F(EmulatedEvent, IsNotWaitedForBeforeItIsRecorded) {
  EXPECT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  expect_violation("an event that was never recorded");
}

TEST_F(EmulatedEvent, IsNotUsedAfterItsEnd) {
  cudaEvent_t gone = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&gone, cudaEventDefault), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(gone), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, gone, 0), cudaErrorInvalidResourceHandle);
  expect_violation("cudaStreamWaitEvent was given an event that is destroyed");
}

TEST_F(EmulatedEvent, WaitsForItsLastRecordBeforeTheWait) {
  *host = 1;
  const Hold hold(other);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, other), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
}

TEST_F(EmulatedEvent, HasATimeOnlyIfItWasMadeForOne) {
  cudaEvent_t untimed = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(untimed, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event, untimed), cudaErrorInvalidResourceHandle);
  expect_violation("one has no time");
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event, event), cudaSuccess);
  EXPECT_EQ(milliseconds, 0);
  ASSERT_EQ(cudaEventDestroy(untimed), cudaSuccess);
}

TEST_F(EmulatedEvent, HasNoTimeBeforeItIsReached) {
  const Hold hold(stream);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event, event), cudaErrorNotReady);
}

}  // namespace
}  // namespace cnn::tests::emulated
