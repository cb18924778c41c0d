#pragma once

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

#include "tests/program/ranks.h"

// Fixtures for runs on several emulated GPUs, in one process or in several.
namespace cnn::tests {

// Sets up the environment of the emulation with two devices per process.
class SeveralDevices : public testing::Test {
 protected:
  void SetUp() override { set_devices(2); }
  void TearDown() override { unsetenv("CNN_EMULATED_DEVICES"); }
  static void set_devices(int count) {
    setenv("CNN_EMULATED_DEVICES", std::to_string(count).c_str(), 1);
  }

  // The seconds that mpirun leaves the other ranks to end by themselves.
  const Environment grace{"OMPI_MCA_odls_base_sigkill_timeout", "4"};
  const Environment watchdog{"MPIEXEC_TIMEOUT", "300"};
  const Environment network{"OMPI_MCA_btl", "self,vader"};
  const Environment libraries{"LD_LIBRARY_PATH", CNN_EMULATED_FOLDER};
};

// Skips its tests on machines that cannot start several processes.
class SeveralDevicesOfProcesses : public SeveralDevices {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_ranks(); !why.empty()) {
      GTEST_SKIP() << why;
    }
    SeveralDevices::SetUp();
  }
};

}  // namespace cnn::tests
