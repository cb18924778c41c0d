#pragma once

#include <gtest/gtest.h>
#include <memory>

#include "runtime/cuda/device.h"

namespace cnn::cuda::tests {

// A fixture with a CUDA device. Skips its tests by name on a machine without one.
class OnCudaDevice : public testing::Test {
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

}  // namespace cnn::cuda::tests
