#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "allreduce/limits.h"
#include "tests/allreduce/ranks.h"

namespace cnn::allreduce {
namespace {

TEST(MeasureLimits, AreMeasuredAlikeOnAllRanks) {
  std::vector<Limits> found(3);
  const auto errors = tests::as_threads(3, {.segment_bytes = 1 << 20U}, [&](Transport& transport) {
    found[static_cast<std::size_t>(transport.rank())] =
        measure_limits(transport, *tests::usable_loops().back(), ranks_on_hosts(1, 3),
                       {.seconds = 0.01, .bytes = 1 << 18U});
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
  for (const Limits& limits : found) {
    EXPECT_EQ(limits.host_of, (std::vector{0, 0, 0}));
    ASSERT_EQ(limits.memory.size(), 5U);  // 16 KiB to 256 KiB
    EXPECT_EQ(limits.memory.back().bytes, 1 << 18U);
    EXPECT_EQ(limits.line, 0);
    EXPECT_GT(limits.hop, 0);
    EXPECT_EQ(limits.hop, found[0].hop);
    for (std::size_t i = 0; i < limits.memory.size(); ++i) {
      const double speed = limits.memory[i].bytes_per_second;
      EXPECT_EQ(speed, found[0].memory[i].bytes_per_second);
      EXPECT_GT(speed, 0);
      EXPECT_LE(speed, limits.memory[0].bytes_per_second);
    }
  }
}

// Returns the working-set sizes at which the measurement takes the speed.
std::vector<double> measured_sizes(std::size_t bytes) {
  std::vector<double> sizes;
  const auto errors = tests::as_threads(2, {.segment_bytes = 1 << 20U}, [&](Transport& transport) {
    const Limits limits = measure_limits(transport, *tests::usable_loops().back(),
                                         ranks_on_hosts(1, 2), {.seconds = 0, .bytes = bytes});
    if (transport.rank() == 0) {
      for (const MemorySpeed& speed : limits.memory) {
        sizes.push_back(speed.bytes);
      }
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  return sizes;
}

TEST(MeasureLimits, DoublesTheWorkingSetUpToTheGivenOne) {
  EXPECT_EQ(measured_sizes(1 << 16U), (std::vector<double>{1 << 14U, 1 << 15U, 1 << 16U}));
  EXPECT_EQ(measured_sizes(1 << 14U), (std::vector<double>{1 << 14U}));
}

TEST(MeasureLimits, AsksNothingOfARankThatIsAlone) {
  const auto errors = tests::as_threads(1, {.segment_bytes = 1 << 16U}, [&](Transport& transport) {
    const Limits limits =
        measure_limits(transport, *tests::usable_loops().back(), ranks_on_hosts(1, 1));
    EXPECT_FALSE(limits.known());
    EXPECT_EQ(limits.hop, 0);
    EXPECT_EQ(limits.line, 0);
    EXPECT_TRUE(limits.host_of.empty());
  });
  EXPECT_EQ(errors, std::vector<std::string>(1));
}

// Limits belong to the real machine of a rank, whatever hosts the topology declares.
TEST(MeasureLimits, CountsMachinesThatAreThere) {
  const auto errors = tests::as_threads(2, {.segment_bytes = 1 << 20U}, [&](Transport& transport) {
    const Limits limits = measure_limits(transport, *tests::usable_loops().back(),
                                         ranks_on_hosts(2, 1), {.seconds = 0, .bytes = 1 << 14U});
    EXPECT_EQ(limits.host_of, (std::vector{0, 0}));
    EXPECT_EQ(limits.line_source, Source::unknown);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

}  // namespace
}  // namespace cnn::allreduce
