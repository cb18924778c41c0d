#include <thread>

#include "tests/runtime/emulated_gpu/emulated_gpu.h"

namespace cnn::tests::emulated {
namespace {

class EmulatedCapture : public EmulatedGpu {
 protected:
  void begin() {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  }
  void fork() {
    ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
  }
  void join() {
    ASSERT_EQ(cudaEventRecord(event, other), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  }
  // Checks that the capture ends as invalid for this reason.
  void expect_invalid(const std::string& why) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    EXPECT_THAT(capture_problem(), testing::HasSubstr(why));
    EXPECT_EQ(launch_increment(host, host, stream), cudaSuccess) << "the stream works as before";
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }
  cudaGraphExec_t end() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return executable;
  }
};

TEST_F(EmulatedCapture, ReplaysForksAndJoinsInTheirOrder) {
  begin();
  ASSERT_EQ(launch_increment(&host[0], &host[0], stream), cudaSuccess);
  fork();
  ASSERT_EQ(launch_increment(&host[1], &host[0], other), cudaSuccess);
  ASSERT_EQ(launch_increment(&host[2], &host[0], stream), cudaSuccess);
  join();
  ASSERT_EQ(launch_increment(&host[3], &host[1], stream), cudaSuccess);
  const cudaGraphExec_t executable = end();
  host[0] = 0;
  for (int replay = 1; replay <= 20; ++replay) {
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    ASSERT_EQ(host[0], replay);
    ASSERT_EQ(host[1], replay + 1);
    ASSERT_EQ(host[2], replay + 1);
    ASSERT_EQ(host[3], replay + 2);
  }
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
}

TEST_F(EmulatedCapture, RefusesAnUnjoinedFork) {
  begin();
  fork();
  ASSERT_EQ(launch_increment(host, host, other), cudaSuccess);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
  EXPECT_THAT(capture_problem(), testing::HasSubstr("never joined"));
  EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess) << "the streams work as before";
}

TEST_F(EmulatedCapture, RefusesToWaitForTheHost) {
  begin();
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  expect_invalid("cudaStreamSynchronize");
  begin();
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorStreamCaptureUnsupported);
  expect_invalid("cudaStreamQuery");
  begin();
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  expect_invalid("cudaEventSynchronize");
}

TEST_F(EmulatedCapture, RefusesMemoryCallsOfItsThread) {
  void* more = nullptr;
  begin();
  EXPECT_EQ(cudaMalloc(&more, 16), cudaErrorStreamCaptureUnsupported);
  expect_invalid("cudaMalloc");
  begin();
  EXPECT_EQ(cudaFree(data), cudaErrorStreamCaptureUnsupported);
  expect_invalid("cudaFree");
  begin();
  EXPECT_EQ(cudaHostAlloc(&more, 16, 0), cudaErrorStreamCaptureUnsupported);
  expect_invalid("cudaHostAlloc");
  begin();
  EXPECT_EQ(cudaHostRegister(&more, sizeof(more), 0), cudaErrorStreamCaptureUnsupported);
  expect_invalid("cudaHostRegister");
}

TEST_F(EmulatedCapture, LeavesOtherThreadsAlone) {
  begin();
  std::thread([] {
    void* more = nullptr;
    EXPECT_EQ(cudaMalloc(&more, 16), cudaSuccess);
    EXPECT_EQ(cudaFree(more), cudaSuccess);
  }).join();
  std::thread([this] {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  EXPECT_EQ(cudaGraphExecDestroy(end()), cudaSuccess);
}

TEST_F(EmulatedCapture, WaitsForNothingOutsideOfIt) {
  ASSERT_EQ(cudaEventRecord(event, other), cudaSuccess);
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureIsolation);
  expect_invalid("outside of the capture");
}

TEST_F(EmulatedCapture, IsNotMergedWithAnother) {
  begin();
  ASSERT_EQ(cudaStreamBeginCapture(other, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, other), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureMerge);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(other, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  expect_invalid("another capture");
}

TEST_F(EmulatedCapture, EndsWhereItBegan) {
  begin();
  fork();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureUnmatched);
  expect_invalid("ended on another stream");
}

TEST_F(EmulatedCapture, LeavesEventsThatNobodyCanWaitForAfterwards) {
  begin();
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(end()), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(other, event, 0), cudaErrorCapturedEvent);
}

TEST_F(EmulatedCapture, IsNotDestroyedWhileItIsReplayed) {
  begin();
  ASSERT_EQ(launch_increment(host, host, stream), cudaSuccess);
  const cudaGraphExec_t executable = end();
  std::thread destroyer;
  {
    const Hold hold(stream);
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    destroyer = std::thread([=] { EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess); });
    while (ExpectViolations::count() == 0) {
      std::this_thread::yield();
    }
  }
  destroyer.join();
  expect_violation("destroyed while it was replayed");
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

TEST_F(EmulatedCapture, IsNotReplayedAfterItsMemoryIsGone) {
  std::int32_t* gone = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&gone), bytes), cudaSuccess);
  begin();
  ASSERT_EQ(launch_increment(gone, host, stream), cudaSuccess);
  const cudaGraphExec_t executable = end();
  ASSERT_EQ(cudaFree(gone), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, stream), cudaErrorInvalidValue);
  expect_violation("at which no block is alive");
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, stream), cudaErrorInvalidResourceHandle);
  expect_violation("an executable graph that is destroyed");
}

}  // namespace
}  // namespace cnn::tests::emulated
