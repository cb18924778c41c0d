// Tests the all-reduce staged through the host on an emulated device, whose kernels wait for the
// host.
#include "allreduce/staged.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "layers/cuda/host_flag.h"
#include "runtime/cuda/device.h"
#include "runtime/error.h"
#include "tests/support/cuda/runtime/driver.h"
#include "tests/support/error_of.h"

namespace cnn::allreduce {
namespace {

// The communicator of a single rank, which fails for one bucket.
class FailingSums final : public Communicator {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  void all_reduce(std::size_t bucket, std::span<const std::span<float>> /*pieces*/,
                  float /*factor*/) override {
    check(bucket != fails, "bucket " + std::to_string(bucket) + " cannot be summed");
  }
  std::size_t fails = 99;
};

class StagedOnDevice : public testing::Test {
 protected:
  static constexpr std::size_t buckets = 4;

  StagedOnDevice() {
    device.on_poll([this](bool waiting) { staged->poll(waiting); });
    stream = device.make_stream(Lane::communicate);
    memory = device.allocate(64);
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
      staged->prepare(bucket, 4);
    }
  }

  StagingFunctions tools() {
    return {.allocate_staging =
                [this](std::size_t elements) {
                  rooms.push_back(device.allocate_host(elements * sizeof(float)));
                  return std::span(reinterpret_cast<float*>(rooms.back().data()), elements);
                },
            .allocate_flag =
                [this] {
                  Buffer flag = device.allocate_host(64);
                  std::fill_n(flag.data(), flag.bytes(), std::byte{});
                  return flag;
                },
            .wait_for = layers::cuda::wait_for_flag,
            .handover_timeout = std::chrono::milliseconds(200)};
  }

  void enqueue_step() {
    const std::span<float> piece(reinterpret_cast<float*>(memory.data()), 4);
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
      staged->all_reduce(*stream, bucket, {&piece, 1}, 1);
    }
  }

  // Returns the error of the stream's work. Ends the process if the device waits for ever.
  std::string error_of_stream() {
    std::future<std::string> error = std::async(
        std::launch::async, [this] { return tests::error_of([this] { stream->synchronize(); }); });
    if (error.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
      static_cast<void>(std::fputs("the device waits for ever\n", stderr));
      std::abort();
    }
    return error.get();
  }

  FailingSums host;
  cuda::CudaDevice device{0};
  std::vector<Buffer> rooms;
  Buffer memory;
  std::unique_ptr<StagedCommunicator> staged = std::make_unique<StagedCommunicator>(host, tools());
  std::unique_ptr<Stream> stream;
};

TEST_F(StagedOnDevice, SumsStepAfterStep) {
  for (int step = 0; step < 3; ++step) {
    enqueue_step();
    EXPECT_EQ(error_of_stream(), "");
  }
}

TEST_F(StagedOnDevice, EndsEveryWaitOfTheDeviceWhenAnEarlierSumFails) {
  host.fails = 0;
  enqueue_step();
  EXPECT_EQ(error_of_stream(), "bucket 0 cannot be summed");
  enqueue_step();
  EXPECT_EQ(error_of_stream(), "bucket 0 cannot be summed") << "no later step waits";
}

TEST_F(StagedOnDevice, EndsEveryWaitOfARecordedStepWhenASumFails) {
  std::array<Stream*, 1> streams{stream.get()};
  const std::unique_ptr<Recording> recording = device.record(streams, [this] { enqueue_step(); });
  recording->replay(*stream);
  EXPECT_EQ(error_of_stream(), "");
  host.fails = 1;
  recording->replay(*stream);
  EXPECT_EQ(error_of_stream(), "bucket 1 cannot be summed");
}

TEST_F(StagedOnDevice, EndsTheWaitForABucketThatFailedHostWorkKeepsBack) {
  stream->host([] { throw Error("other host work has failed"); });
  enqueue_step();
  EXPECT_EQ(error_of_stream(), "other host work has failed");
}

}  // namespace
}  // namespace cnn::allreduce
