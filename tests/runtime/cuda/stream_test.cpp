#include "runtime/cuda/stream.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <thread>

#include "runtime/cuda/device.h"

namespace cnn::cuda {
namespace {

// Skips its tests by name on a machine without a CUDA device.
class CudaStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    const DeviceCount found = count_devices();
    if (found.devices == 0) {
      GTEST_SKIP() << "no CUDA device: " << found.why_none;
    }
    device_ = std::make_unique<CudaDevice>();
  }

  CudaDevice& device() { return *device_; }

 private:
  std::unique_ptr<CudaDevice> device_;
};

// To set the clock's origin, a stamp waits for the stream's earlier work. A stamp after an origin
// that is still in use does not.
TEST_F(CudaStreamTest, ReleasesTheClockWhenItIsDestroyedWithStamps) {
  std::chrono::steady_clock::time_point at;
  device().make_stream(Lane::compute)->stamp(at);
  std::atomic<bool> done = false;
  const auto stream = device().make_stream(Lane::compute);
  stream->host([&done] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    done = true;
  });
  stream->stamp(at);
  EXPECT_TRUE(done) << "the origin is still that of the destroyed stream";
  stream->synchronize();
}

}  // namespace
}  // namespace cnn::cuda
