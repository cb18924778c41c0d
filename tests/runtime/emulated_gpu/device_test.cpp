#include "runtime/cuda/device.h"

#include <array>
#include <memory>
#include <mutex>

#include "tests/runtime/cuda/kernels.h"
#include "tests/runtime/emulated_gpu/emulated_gpu.h"
#include "tests/support/cuda/runtime/objects.h"

namespace cnn::tests::emulated {
namespace {

// A device of which another is the current one of the calling thread.
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
  lane->record(*mark);  // which only an event of the same device can be
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
  const int compute = priority(Lane::compute);  // lower numbers start first
  EXPECT_LT(priority(Lane::copy_in), compute);
  EXPECT_LT(priority(Lane::copy_out), compute);
  EXPECT_LT(priority(Lane::communicate), compute);
  EXPECT_GT(priority(Lane::side), compute);
}

}  // namespace
}  // namespace cnn::tests::emulated
