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

// A small step on two lanes: in by one, out by the other, host work at its end.
class CudaRecordingTest : public testing::Test {
 protected:
  void SetUp() override {
    const DeviceCount found = count_devices();
    if (found.devices == 0) {
      GTEST_SKIP() << "no CUDA device: " << found.why_none;
    }
    device_ = std::make_unique<CudaDevice>();
    compute_ = device_->make_stream(Lane::compute);
    copies_ = device_->make_stream(Lane::copy_out);
    done_ = device_->make_event();
    in_ = device_->allocate_host(sizeof(std::int32_t));
    out_ = device_->allocate_host(sizeof(std::int32_t));
    data_ = device_->allocate(sizeof(std::int32_t));
  }

  static std::int32_t& value(const Buffer& buffer) {
    return *reinterpret_cast<std::int32_t*>(buffer.data());
  }
  std::array<Stream*, 2> streams() { return {compute_.get(), copies_.get()}; }

  void enqueue() {
    compute_->copy(data_.data(), in_.data(), in_.bytes());
    tests::scale_and_add_one(*compute_, &value(data_), 1, 3);
    compute_->record(*done_);
    copies_->wait(*done_);
    copies_->copy(out_.data(), data_.data(), out_.bytes());
    copies_->host([this] { seen_.push_back(value(out_)); });
  }

  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<Stream> compute_, copies_;
  std::unique_ptr<Event> done_;
  Buffer in_, out_, data_;
  std::vector<std::int32_t> seen_;
};

TEST_F(CudaRecordingTest, RunsNothingUntilItIsReplayed) {
  value(out_) = -1;
  const auto recording = device_->record(streams(), [this] { enqueue(); });
  compute_->synchronize();
  copies_->synchronize();
  EXPECT_EQ(value(out_), -1);
  EXPECT_TRUE(seen_.empty());
}

TEST_F(CudaRecordingTest, GivesWhatEnqueuingGivesEveryTime) {
  const auto recording = device_->record(streams(), [this] { enqueue(); });
  for (const std::int32_t input : {5, -2, 100}) {
    value(in_) = input;
    recording->replay(*compute_);
    compute_->synchronize();
    EXPECT_EQ(value(out_), 3 * input + 1);
    enqueue();
    copies_->synchronize();
    EXPECT_EQ(value(out_), 3 * input + 1);
  }
  EXPECT_EQ(seen_, (std::vector<std::int32_t>{16, 16, -5, -5, 301, 301}));
}

TEST_F(CudaRecordingTest, IsOneEntryOfItsStream) {
  const auto recording = device_->record(streams(), [this] { enqueue(); });
  value(in_) = 1;
  tests::spin(*compute_, 1'000'000);
  recording->replay(*compute_);
  compute_->host([this] { value(in_) = value(out_); });
  recording->replay(*compute_);
  compute_->synchronize();
  EXPECT_EQ(value(out_), 3 * (3 * 1 + 1) + 1);
}

TEST_F(CudaRecordingTest, OfWorkThatThrowsLeavesTheStreamsAsTheyWere) {
  EXPECT_THROW(device_->record(streams(),
                               [this] {
                                 enqueue();
                                 throw Error("refused");
                               }),
               Error);
  value(in_) = 7;
  enqueue();
  compute_->synchronize();
  copies_->synchronize();
  EXPECT_EQ(value(out_), 22);
}

TEST_F(CudaRecordingTest, RefusesToWaitForTheHost) {
  EXPECT_THROW(device_->record(streams(), [this] { compute_->synchronize(); }), Error);
  compute_->synchronize();
}

TEST_F(CudaRecordingTest, ThrowsErrorsOfHostWorkAtEveryReplay) {
  const auto recording =
      device_->record(streams(), [this] { copies_->host([] { throw Error("the work broke"); }); });
  for (int i = 0; i < 2; ++i) {
    recording->replay(*compute_);
    compute_->synchronize();
    EXPECT_THROW(copies_->synchronize(), Error);
  }
}

}  // namespace
}  // namespace cnn::cuda
