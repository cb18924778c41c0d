#include "runtime/cpu/pages.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "runtime/cpu/device.h"

namespace cnn {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20U;

// Some sizes are multiples of pages, some of huge pages, some of neither.
const std::size_t sizes[] = {4096, 4096 + 64, 100'032, 2 * mib, 2 * mib + 64, 5 * mib};

TEST(GuardPages, LetEveryByteBeWritten) {
  CpuDevice device;
  for (const std::size_t bytes : sizes) {
    const Buffer buffer = device.allocate(bytes);
    for (std::size_t at = 0; at < bytes; ++at) {
      buffer.data()[at] = std::byte{1};
    }
  }
}

TEST(GuardPagesDeathTest, EndTheProgramThatWritesOneByteBehindABuffer) {
  CpuDevice device;
  for (const std::size_t bytes : sizes) {
    const Buffer buffer = device.allocate(bytes);
    volatile std::byte* const behind = buffer.data() + bytes;
    EXPECT_DEATH(*behind = std::byte{1}, "") << bytes;
    const Buffer host = device.allocate_host(bytes);
    volatile std::byte* const behind_host = host.data() + bytes;
    EXPECT_DEATH(*behind_host = std::byte{1}, "") << bytes;
  }
}

TEST(GuardPagesDeathTest, EndTheProgramThatReadsBehindTheLastCacheLine) {
  CpuDevice device;
  for (const std::size_t bytes : sizes) {
    const Buffer buffer = device.allocate(bytes + 1);
    const volatile std::byte* const behind = buffer.data() + bytes + 64;
    EXPECT_DEATH(static_cast<void>(*behind), "") << bytes;
  }
}

TEST(GuardPagesDeathTest, EndTheProgramThatWritesThePageBelow) {
  CpuDevice device;
  const Buffer buffer = device.allocate(4096);
  volatile std::byte* const below = buffer.data() - 1;
  EXPECT_DEATH(*below = std::byte{1}, "");
  const Buffer huge = device.allocate(2 * mib);
  volatile std::byte* const below_huge = huge.data() - 1;
  EXPECT_DEATH(*below_huge = std::byte{1}, "");
}

TEST(AllocatePages, GivesBackWhatItTook) {
  for (int i = 0; i < 200; ++i) {  // without release() the address space would not suffice
    HostBytes memory = allocate_pages(std::size_t{1} << 40U);
    if (memory.data != nullptr) {  // a machine may refuse so much at once
      memory.release(memory.data);
    }
  }
  const HostBytes memory = allocate_pages(mib);
  ASSERT_NE(memory.data, nullptr);
  memory.release(memory.data);
}

TEST(AllocatePages, GivesNothingWhereNoAddressesAreLeft) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  for (const std::size_t bytes : {most, most - 5, most - 6 * mib, most / 2}) {
    EXPECT_EQ(allocate_pages(bytes).data, nullptr) << bytes;
  }
}

}  // namespace
}  // namespace cnn
