#pragma once

#include <cstdlib>
#include <cuda_runtime_api.h>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cuda/runtime/driver.h"
#include "tests/support/cuda/runtime/violation.h"

namespace cnn::tests::emulated {

// Sets an environment variable until the end of a scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// Waits for a nonblocking communicator's call and returns its final status.
inline ncclResult_t settled(ncclComm_t communicator, ncclResult_t status) {
  while (status == ncclInProgress) {
    std::this_thread::yield();
    EXPECT_EQ(ncclCommGetAsyncError(communicator, &status), ncclSuccess);
  }
  return status;
}

// One rank of a test: a device, its stream and some memory that host and device access.
struct NcclRank {
  explicit NcclRank(int number_of_rank, std::size_t elements = 16) : number(number_of_rank) {
    EXPECT_EQ(cudaSetDevice(number), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0), cudaSuccess);
    EXPECT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&host), elements * sizeof(float),
                            cudaHostAllocPortable),
              cudaSuccess);
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data), elements * sizeof(float)), cudaSuccess);
    std::fill_n(host, elements, static_cast<float>(number + 1));
    EXPECT_EQ(cudaMemcpyAsync(data, host, elements * sizeof(float), cudaMemcpyDefault, stream),
              cudaSuccess);
  }
  ~NcclRank() {
    EXPECT_EQ(cudaSetDevice(number), cudaSuccess);
    if (communicator != nullptr) {
      EXPECT_EQ(ncclCommAbort(communicator), ncclSuccess);
    }
    static_cast<void>(cudaStreamSynchronize(stream));  // a lost rank leaves an error on the stream
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaFree(data), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
  }
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;

  ncclResult_t join(const ncclUniqueId& id, int ranks, int blocking = 0) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking;
    const ncclResult_t status = ncclCommInitRankConfig(&communicator, ranks, id, number, &config);
    return settled(communicator, status);
  }
  ncclResult_t reduce(std::size_t elements, ncclRedOp_t operation = ncclSum) {
    return settled(communicator, ncclAllReduce(data, data, elements, ncclFloat32, operation,
                                               communicator, stream));
  }
  ncclResult_t state() const {
    ncclResult_t now = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(communicator, &now), ncclSuccess);
    return now;
  }
  // Captures the stream's work from here on instead of running it.
  void begin_capture() const {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  }
  cudaGraphExec_t end_capture() const {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return executable;
  }
  // Returns an element of the memory after all work of the stream has ended.
  float element(std::size_t at) {
    EXPECT_EQ(cudaMemcpyAsync(host, data + at, sizeof(float), cudaMemcpyDefault, stream),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    return *host;
  }

  int number;
  cudaStream_t stream = nullptr;
  ncclComm_t communicator = nullptr;
  float *data = nullptr, *host = nullptr;
};

// Fixture with three small emulated devices; it keeps violations.
class EmulatedNccl : public testing::Test {
 protected:
  void SetUp() override {
    set_up({.devices = 3, .bytes_per_device = std::size_t{32} << 20U});
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  }
  void TearDown() override {
    EXPECT_THAT(ExpectViolations::take(), testing::IsEmpty());
    set_up({});
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  }
  // Runs `part` for each rank on a thread of its own.
  static void on_ranks(int ranks, const std::function<void(int rank)>& part) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&part, rank] { part(rank); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  ncclUniqueId id{};

 private:
  ExpectViolations expecting_;
};

// Expects exactly one violation, which contains these words.
inline void expect_one_violation(const std::string& words) {
  EXPECT_THAT(ExpectViolations::take(), testing::ElementsAre(testing::HasSubstr(words)));
}

}  // namespace cnn::tests::emulated
