#include "bench/ranks/rank_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

constexpr std::size_t shared_unit = std::size_t{1} << 20U;

Backend backend_with_limits(const MemoryLimits& memory) {
  Backend backend;
  backend.memory = memory;
  return backend;
}

TEST(RankContext, HasTheWholeBackendForASingleRank) {
  const Backend backend = backend_with_limits({.device = 10, .host = 20, .text = "free"});
  const RankContext context = only_rank(backend);
  EXPECT_EQ(&context.backend, &backend);
  EXPECT_EQ(context.rank, 0);
  EXPECT_EQ(context.ranks, 1);
  EXPECT_EQ(context.memory.device, 10U);
  EXPECT_EQ(context.memory.host, 20U);
  EXPECT_EQ(context.memory.text, "free");
}

TEST(ShareOfMemory, DividesTheHostsMemoryWhereTheProcessorComputes) {
  const Backend backend = backend_with_limits({.device = 100, .text = "free"});
  EXPECT_EQ(divisible_bytes(backend, backend.memory), 100U);
  const MemoryLimits share = share_of_memory(backend, 100, 4);
  EXPECT_EQ(share.device, 25U);
  EXPECT_FALSE(share.host.has_value());
  EXPECT_EQ(share.text, "free");
}

TEST(ShareOfMemory, LeavesTheMemoryThatAProcessorReservesToPlayADevice) {
  const Backend backend = backend_with_limits({.device = 10, .host = 90});
  EXPECT_EQ(divisible_bytes(backend, backend.memory), 100U);
  const MemoryLimits share = share_of_memory(backend, 100, 4);
  EXPECT_EQ(share.device, 10U);
  EXPECT_EQ(share.host, 15U);
}

TEST(ShareOfMemory, IsRefusedWhereItIsLessThanThePlayedDevice) {
  const Backend backend =
      backend_with_limits({.device = 30 * shared_unit, .host = 70 * shared_unit});
  EXPECT_EQ(tests::error_of([&] { share_of_memory(backend, 100 * shared_unit, 4); }),
            "--device_memory_mb=30: 4 ranks share the 100 MiB that are free");
}

TEST(ShareOfMemory, DividesTheHostsMemoryAloneWhereEachRankHasADevice) {
  Backend backend = backend_with_limits({.device = 1000, .host = 100});
  const DeviceExchange exchange;
  backend.device_exchange = &exchange;
  EXPECT_EQ(divisible_bytes(backend, backend.memory), 100U);
  const MemoryLimits share = share_of_memory(backend, 100, 4);
  EXPECT_EQ(share.device, 1000U);
  EXPECT_EQ(share.host, 25U);
}

}  // namespace
}  // namespace cnn::bench
