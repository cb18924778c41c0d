#include "runtime/cuda/recording.h"

#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/error.h"
#include "tests/runtime/cuda/kernels.h"

namespace cnn::cuda {
namespace {

// A small step on two lanes: one lane copies in, the other copies out, and host work ends the step.
class CudaRecordingTest : public testing::Test {
 protected:
  void SetUp() override {
    const DeviceCount found = count_devices();
    if (found.devices == 0) {
      GTEST_SKIP() << "no CUDA device: " << found.why_none;
    }
    device = std::make_unique<CudaDevice>();
    compute = device->make_stream(Lane::compute);
    copies = device->make_stream(Lane::copy_out);
    done = device->make_event();
    in = device->allocate_host(sizeof(std::int32_t));
    out = device->allocate_host(sizeof(std::int32_t));
    data = device->allocate(sizeof(std::int32_t));
  }

  static std::int32_t& value(const Buffer& buffer) {
    return *reinterpret_cast<std::int32_t*>(buffer.data());
  }
  std::array<Stream*, 2> streams() { return {compute.get(), copies.get()}; }

  void enqueue() {
    compute->copy(data.data(), in.data(), in.bytes());
    tests::scale_and_add_one(*compute, &value(data), 1, 3);
    compute->record(*done);
    copies->wait(*done);
    copies->copy(out.data(), data.data(), out.bytes());
    copies->host([this] { seen.push_back(value(out)); });
  }

  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<Stream> compute, copies;
  std::unique_ptr<Event> done;
  Buffer in, out, data;
  std::vector<std::int32_t> seen;
};

TEST_F(CudaRecordingTest, RunsNothingUntilItIsReplayed) {
  value(out) = -1;
  const auto recording = device->record(streams(), [this] { enqueue(); });
  compute->synchronize();
  copies->synchronize();
  EXPECT_EQ(value(out), -1);
  EXPECT_TRUE(seen.empty());
}

TEST_F(CudaRecordingTest, GivesWhatEnqueuingGivesEveryTime) {
  const auto recording = device->record(streams(), [this] { enqueue(); });
  for (const std::int32_t input : {5, -2, 100}) {
    value(in) = input;
    recording->replay(*compute);
    compute->synchronize();
    EXPECT_EQ(value(out), 3 * input + 1);
    enqueue();
    copies->synchronize();
    EXPECT_EQ(value(out), 3 * input + 1);
  }
  EXPECT_EQ(seen, (std::vector<std::int32_t>{16, 16, -5, -5, 301, 301}));
}

TEST_F(CudaRecordingTest, IsOneEntryOfItsStream) {
  const auto recording = device->record(streams(), [this] { enqueue(); });
  value(in) = 1;
  tests::spin(*compute, 1'000'000);
  recording->replay(*compute);
  compute->host([this] { value(in) = value(out); });
  recording->replay(*compute);
  compute->synchronize();
  EXPECT_EQ(value(out), 3 * (3 * 1 + 1) + 1);
}

TEST_F(CudaRecordingTest, LeavesTheStreamsUnchangedWhenTheWorkThrows) {
  EXPECT_THROW(device->record(streams(),
                              [this] {
                                enqueue();
                                throw Error("refused");
                              }),
               Error);
  value(in) = 7;
  enqueue();
  compute->synchronize();
  copies->synchronize();
  EXPECT_EQ(value(out), 22);
}

TEST_F(CudaRecordingTest, RefusesToWaitForTheHost) {
  EXPECT_THROW(device->record(streams(), [this] { compute->synchronize(); }), Error);
  compute->synchronize();
}

TEST_F(CudaRecordingTest, ThrowsErrorsOfHostWorkAtEveryReplay) {
  const auto recording =
      device->record(streams(), [this] { copies->host([] { throw Error("the work broke"); }); });
  for (int i = 0; i < 2; ++i) {
    recording->replay(*compute);
    compute->synchronize();
    EXPECT_THROW(copies->synchronize(), Error);
  }
}

}  // namespace
}  // namespace cnn::cuda
