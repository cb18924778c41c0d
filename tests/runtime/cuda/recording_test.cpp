#include "runtime/cuda/recording.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <vector>

#include "runtime/disk_file.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"
#include "tests/runtime/cuda/kernels.h"
#include "tests/runtime/cuda/on_device.h"

namespace cnn::cuda {
namespace {

// A small step on two lanes: one lane copies in, the other copies out, and host work ends the step.
class CudaRecordingTest : public tests::OnCudaDevice {
 protected:
  void SetUp() override {
    OnCudaDevice::SetUp();
    if (IsSkipped()) {
      return;
    }
    compute = device().make_stream(Lane::compute);
    copies = device().make_stream(Lane::copy_out);
    done = device().make_event();
    in = device().allocate_host(sizeof(std::int32_t));
    out = device().allocate_host(sizeof(std::int32_t));
    data = device().allocate(sizeof(std::int32_t));
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

  std::unique_ptr<Stream> compute, copies;
  std::unique_ptr<Event> done;
  Buffer in, out, data;
  std::vector<std::int32_t> seen;
};

TEST_F(CudaRecordingTest, RunsNothingUntilItIsReplayed) {
  value(out) = -1;
  const auto recording = device().record(streams(), [this] { enqueue(); });
  compute->synchronize();
  copies->synchronize();
  EXPECT_EQ(value(out), -1);
  EXPECT_TRUE(seen.empty());
}

TEST_F(CudaRecordingTest, GivesWhatEnqueuingGivesEveryTime) {
  const auto recording = device().record(streams(), [this] { enqueue(); });
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
  const auto recording = device().record(streams(), [this] { enqueue(); });
  value(in) = 1;
  tests::spin(*compute, 1'000'000);
  recording->replay(*compute);
  compute->host([this] { value(in) = value(out); });
  recording->replay(*compute);
  compute->synchronize();
  EXPECT_EQ(value(out), 3 * (3 * 1 + 1) + 1);
}

TEST_F(CudaRecordingTest, LeavesTheStreamsUnchangedWhenTheWorkThrows) {
  EXPECT_THROW(device().record(streams(),
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
  EXPECT_THROW(device().record(streams(), [this] { compute->synchronize(); }), Error);
  compute->synchronize();
}

TEST_F(CudaRecordingTest, ThrowsErrorsOfHostWorkAtEveryReplay) {
  const auto recording =
      device().record(streams(), [this] { copies->host([] { throw Error("the work broke"); }); });
  for (int i = 0; i < 2; ++i) {
    recording->replay(*compute);
    compute->synchronize();
    EXPECT_THROW(copies->synchronize(), Error);
  }
}

// As a step that swaps a tensor to a disk and back: direct I/O from and to pinned memory, in the
// order of events, also where the step is replayed.
TEST_F(CudaRecordingTest, WritesToAFileAndReadsItBackInEachReplay) {
  const DiskFile file(std::filesystem::temp_directory_path(), "disk");
  const Buffer staging = device().allocate_host(disk_alignment);
  const auto disk = device().make_stream(Lane::disk);
  const auto stored = device().make_event(), loaded = device().make_event();
  const auto step = [&] {
    compute->copy(data.data(), in.data(), in.bytes());
    compute->copy(staging.data(), data.data(), data.bytes());
    compute->record(*stored);
    disk->wait(*stored);
    disk->host([&] { file.write({staging.data(), staging.bytes()}, 0); });
    disk->host([&] { value(staging) = -1; });
    disk->host([&] { file.read({staging.data(), staging.bytes()}, 0); });
    disk->record(*loaded);
    compute->wait(*loaded);
    compute->copy(data.data(), staging.data(), data.bytes());
    compute->copy(out.data(), data.data(), out.bytes());
  };
  const std::array<Stream*, 2> both{compute.get(), disk.get()};
  const auto recording = device().record(both, step);
  for (std::int32_t replay = 1; replay <= 3; ++replay) {
    value(in) = replay;
    value(out) = 0;
    recording->replay(*compute);
    compute->synchronize();
    disk->synchronize();
    EXPECT_EQ(value(out), replay);
  }
}

}  // namespace
}  // namespace cnn::cuda
