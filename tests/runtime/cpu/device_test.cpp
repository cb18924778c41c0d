#include "runtime/cpu/device.h"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <sched.h>

#include "runtime/error.h"

namespace cnn {
namespace {

std::size_t address(const Buffer& buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer.data());
}

TEST(CpuDevice, AlignsBuffers) {
  CpuDevice device;
  EXPECT_EQ(address(device.allocate(1)) % 64, 0U);
  EXPECT_EQ(address(device.allocate((std::size_t{5} << 20U) + 1)) % 64, 0U);
  EXPECT_EQ(address(device.allocate_host(100)) % 64, 0U);
  EXPECT_EQ(device.allocate(100).bytes(), 100U);
}

TEST(CpuDevice, KeepsItsMemoryLimitAndTakesBytesBack) {
  CpuDevice device({.memory_limit = 1000});
  EXPECT_EQ(device.memory_bytes(), 1000U);
  {
    const Buffer first = device.allocate(600);
    EXPECT_EQ(device.memory_bytes(), 400U);
    try {
      device.allocate(500);
      FAIL() << "allocated beyond the limit";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "out of memory: 500 bytes asked, 400 of the device's limit of 1000 are left");
    }
    EXPECT_NO_THROW(device.allocate_host(5000)) << "the device's limit does not apply to the host";
  }
  EXPECT_EQ(device.memory_bytes(), 1000U);
}

TEST(CpuDevice, SaysHowMuchWasAskedWhenThereIsNoMemory) {
  CpuDevice device;
  try {
    device.allocate(SIZE_MAX - 5);
    FAIL() << "got it";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "out of memory: 18446744073709551610 bytes asked");
  }
}

TEST(CpuDevice, BuffersMayOutliveTheDevice) {
  Buffer buffer;
  {
    CpuDevice device;
    buffer = device.allocate(100);
  }
  buffer.data()[99] = std::byte{1};
  EXPECT_EQ(buffer.data()[99], std::byte{1});
}

TEST(CpuDevice, RefusesCoresThatAreNotThere) {
  EXPECT_THROW(CpuDevice({.cpus = {1023}}).make_stream(Lane::compute), Error);
  EXPECT_THROW(CpuDevice({.cpus = {-1}}).make_stream(Lane::compute), Error);
}

TEST(CpuDevice, PinsStreamsToItsCores) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  int core = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(core), &allowed)) {
    ++core;
  }
  CpuDevice device({.cpus = {core}});
  const auto stream = device.make_stream(Lane::compute);
  int ran_on = -1;
  stream->host([&ran_on] { ran_on = sched_getcpu(); });
  stream->synchronize();
  EXPECT_EQ(ran_on, core);
}

}  // namespace
}  // namespace cnn
