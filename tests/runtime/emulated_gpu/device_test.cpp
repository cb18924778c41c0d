#include "runtime/cuda/device.h"

#include <array>
#include <memory>
#include <mutex>

#include "runtime/error.h"
#include "tests/runtime/cuda/kernels.h"
#include "tests/runtime/emulated_gpu/emulated_gpu.h"
#include "tests/support/cuda/runtime/objects.h"
#include "tests/support/files.h"

namespace cnn::tests::emulated {
namespace {

// A device that is not the current one of the calling thread.
class DeviceBesideTheCurrent : public EmulatedGpu {
 protected:
  void SetUp() override {
    EmulatedGpu::SetUp();
    device = std::make_unique<cnn::cuda::CudaDevice>(1);
    leave();
  }

  static void leave() { ASSERT_EQ(cudaSetDevice(0), cudaSuccess); }

  std::unique_ptr<cnn::cuda::CudaDevice> device;
};

int device_of(const Buffer& buffer) {
  const std::scoped_lock lock(driver().lock.mutex);
  const Block* block = driver().memory.find(buffer.data());
  return block == nullptr ? -1 : block->device;
}

// The file gives all attributes, so another file describes another machine.
TEST(DescribedDevice, HasTheAttributesOfItsFile) {
  const TemporaryFolder folder;
  folder.write("small.json", R"({"cudnn": {"deviceName": "Small", "deviceVer": 860,
      "multiProcessorCount": 7, "smClockRateKHz": 1500000, "memClockRateKHz": 900000,
      "maxThreadsPerBlock": 512, "maxThreadsPerSM": 1536, "maxCtasPerSM": 3,
      "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 1024,
      "maxSharedMemoryPerBlockOptin": 4096}})");
  set_up({.description = read_description(folder / "small.json")});
  const cnn::cuda::DeviceFacts facts = cnn::cuda::CudaDevice(0).facts();
  EXPECT_EQ(facts.name, "Small");
  EXPECT_EQ(10 * facts.major + facts.minor, 86);
  EXPECT_EQ(facts.multiprocessors, 7);
  EXPECT_EQ(facts.clock_khz, 1'500'000);
  EXPECT_EQ(facts.memory_clock_khz, 900'000);
  EXPECT_EQ(facts.cache_bytes, 1 << 20);
  int blocks = 0;
  const auto resident = [&blocks](int threads, std::size_t shared_bytes) {
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nullptr, threads, shared_bytes);
    return blocks;
  };
  EXPECT_EQ(resident(512, 0), 2) << "each thread has 64 registers";
  EXPECT_EQ(resident(128, 0), 3);
  EXPECT_EQ(resident(128, 2048), 2);
  set_up({});
}

TEST(DescribedDevice, IsAnH100WhereNothingElseIsSaid) {
  const cnn::cuda::DeviceFacts facts = cnn::cuda::CudaDevice(0).facts();
  EXPECT_EQ(facts.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(facts.multiprocessors, 132);
}

TEST(DescribedDevice, NamesTheFileThatDescribesNoDevice) {
  const TemporaryFolder folder;
  folder.write("empty.json", "{}");
  for (const char* file : {"empty.json", "missing.json"}) {
    try {
      read_description(folder / file);
      ADD_FAILURE() << file;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(folder / file));
    }
  }
}

TEST_F(DeviceBesideTheCurrent, TakesMemoryOfItsOwn) {
  const Buffer block = device->allocate(64);
  EXPECT_EQ(device_of(block), 1);
}

TEST_F(DeviceBesideTheCurrent, CountsTheMemoryThatItHasFree) {
  const std::size_t before = device->memory_bytes();
  const Buffer block = device->allocate(std::size_t{1} << 20U);
  leave();
  EXPECT_EQ(device->memory_bytes(), before - block.bytes());
}

TEST_F(DeviceBesideTheCurrent, HasStreamsAndEventsOfItsOwn) {
  const std::unique_ptr<Stream> lane = device->make_stream(Lane::compute);
  EXPECT_EQ(cnn::cuda::native(*lane)->device, 1);
  leave();
  const std::unique_ptr<Event> mark = device->make_event();
  lane->record(*mark);  // only an event of the stream's device can be recorded
  lane->synchronize();
}

TEST_F(DeviceBesideTheCurrent, RecordsOnItself) {
  const std::unique_ptr<Stream> lane = device->make_stream(Lane::compute);
  const Buffer numbers = device->allocate(4 * sizeof(std::int32_t));
  leave();
  const std::array<Stream*, 1> lanes{lane.get()};
  const auto recording = device->record(lanes, [&] {
    cnn::cuda::tests::scale_and_add_one(*lane, reinterpret_cast<std::int32_t*>(numbers.data()), 4,
                                        1);
  });
  recording->replay(*lane);
  lane->synchronize();
}

TEST_F(DeviceBesideTheCurrent, StartsWhatOthersWaitForBeforeComputeAndSideWorkLast) {
  const auto priority = [&](Lane lane) {
    return cnn::cuda::native(*device->make_stream(lane))->priority;
  };
  const int compute = priority(Lane::compute);  // a lower number has a higher priority
  EXPECT_LT(priority(Lane::copy_in), compute);
  EXPECT_LT(priority(Lane::copy_out), compute);
  EXPECT_LT(priority(Lane::communicate), compute);
  EXPECT_GT(priority(Lane::side), compute);
}

}  // namespace
}  // namespace cnn::tests::emulated
