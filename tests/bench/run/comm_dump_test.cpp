#include "bench/run/comm_dump.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/run/exchange_flags.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;

TEST(CommDump, KnowsMeanMedianTailAndJitterOfAWindow) {
  const RankWindow window = window_of({0.4, 0.1, 0.2, 0.3});
  EXPECT_DOUBLE_EQ(window.mean, 0.25);
  EXPECT_EQ(window.p50, 0.2);
  EXPECT_EQ(window.p99, 0.4);
  EXPECT_DOUBLE_EQ(window.jitter, 0.3);
}

TEST(CommDump, CountsTheBucketsOfEachWay) {
  Config config;
  config.comm.spec = "rd:1k:direct@2x2";
  const Exchange exchange = make_exchange(config, allreduce::ranks_on_hosts(1, 4), true);
  const std::array<std::size_t, 4> buckets{1000, 5000, 9000, 10};
  const StepExchange step = step_exchange(buckets, exchange);
  EXPECT_EQ(step.ways, "2 buckets by doubling, 2 by grid_of_direct 2x2");
  EXPECT_EQ(step.bytes, 4 * 15010);
  EXPECT_GT(step.least_seconds, 0);
}

TEST(CommDump, NamesTheSlowestRankAndTheMostUnsteadyOne) {
  const std::array<RankWindow, 3> ranks{
      {{.mean = 0.001, .p50 = 0.001, .p99 = 0.001},
       {.mean = 0.001, .p50 = 0.001, .p99 = 0.002, .jitter = 3e-3},
       {.mean = 0.002, .p50 = 0.002, .p99 = 0.004}}};
  EXPECT_THAT(
      dump_lines(11, 20, ranks, {.bytes = 3e6, .least_seconds = 0.001, .ways = "1 bucket by ring"}),
      ElementsAre("comm: steps 11-20: end-to-end 2.00 ms a step on rank 2 (p50 2.00, p99 "
                  "4.00); largest jitter 3.00 ms on rank 1",
                  "comm:   3.00 MB at 2.00 GB/s (bus), 2.00 x the least; 1 bucket by ring"));
}

}  // namespace
}  // namespace cnn::bench
