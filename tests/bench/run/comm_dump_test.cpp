#include "bench/run/comm_dump.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/ranks/exchange_flags.h"

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
  EXPECT_EQ(step.algorithms, "2 buckets by doubling, 2 by grid_of_direct 2x2");
  EXPECT_EQ(step.bytes, 4 * 15010);
  EXPECT_EQ(step.bucket_mb, (std::vector{4e-3, 20e-3, 36e-3, 4e-5}));
  EXPECT_EQ(step.bound.source, allreduce::Source::unknown) << "no limit was measured";
}

TEST(CommDump, NamesTheSlowestRankAndTheMostUnsteadyOne) {
  const std::array<RankWindow, 3> ranks{
      {{.mean = 0.001, .p50 = 0.001, .p99 = 0.001},
       {.mean = 0.001, .p50 = 0.001, .p99 = 0.002, .jitter = 3e-3},
       {.mean = 0.002, .p50 = 0.002, .p99 = 0.004}}};
  EXPECT_THAT(
      dump_lines(11, 20, ranks,
                 {.bytes = 3e6,
                  .bound = {0.001, "memory", allreduce::Source::measured},
                  .algorithms = "1 bucket by ring"}),
      ElementsAre(
          "comm: steps 11-20: end-to-end 2.00 ms a step on rank 2 (p50 2.00, p99 "
          "4.00); largest jitter 3.00 ms on rank 1",
          "comm:   3.00 MB at 2.00 GB/s (bus), 2.00 x the bound (memory, measured); 1 bucket "
          "by ring"));
  EXPECT_THAT(dump_lines(1, 1, ranks, {.bytes = 3e6, .algorithms = "1 bucket by ring"})[1],
              testing::HasSubstr("no bound is known"));
}

// There are two steps of two buckets, and rank 1 begins the second bucket late.
TEST(CommDump, TellsWaitingForTheLatestRankFromMovingBytes) {
  const std::vector<std::vector<ReductionTime>> reductions{
      {{0, 10.0, 10.5}, {1, 11.0, 12.0}, {0, 20.0, 20.5}, {1, 21.0, 22.0}},
      {{0, 10.0, 10.5}, {1, 11.75, 12.0}, {0, 20.0, 20.5}, {1, 21.75, 22.0}}};
  const WaitTable table = wait_table(reductions, 2);
  EXPECT_DOUBLE_EQ(table.of_rank[0].wait, 0.75);
  EXPECT_DOUBLE_EQ(table.of_rank[0].transfer, 0.75);
  EXPECT_DOUBLE_EQ(table.of_rank[1].wait, 0);
  EXPECT_DOUBLE_EQ(table.of_rank[1].transfer, 0.75);
  EXPECT_DOUBLE_EQ(table.of_bucket[0].wait, 0);
  EXPECT_DOUBLE_EQ(table.of_bucket[0].transfer, 0.5);
  EXPECT_DOUBLE_EQ(table.of_bucket[1].wait, 0.75);
  EXPECT_DOUBLE_EQ(table.of_bucket[1].transfer, 0.25);
  EXPECT_THAT(wait_lines(table, {.bucket_mb = {1, 8.5}}),
              ElementsAre("comm:     rank             wait ms  transfer ms",
                          "comm:        0             750.000      750.000",
                          "comm:        1               0.000      750.000",
                          "comm:   bucket        MB   wait ms  transfer ms",
                          "comm:        0     1.000     0.000      500.000",
                          "comm:        1     8.500   750.000      250.000"));
}

TEST(CommDump, HasNoNegativeTimeWhereAClockIsAhead) {
  const WaitTable table =
      wait_table(std::vector<std::vector<ReductionTime>>{{{0, 1.0, 1.5}}, {{0, 2.0, 2.25}}}, 1);
  EXPECT_EQ(table.of_rank[0].wait, 0.5);
  EXPECT_EQ(table.of_rank[0].transfer, 0);
  EXPECT_EQ(table.of_rank[1].transfer, 0.25);
}

TEST(CommDump, ShowsTheLongestOfManyRanks) {
  WaitTable table;
  table.of_rank.resize(100, {.wait = 0.001});
  table.of_rank[70].transfer = 1;
  const std::vector<std::string> lines = wait_lines(table, {});
  EXPECT_EQ(lines.size(), 18U);
  EXPECT_THAT(lines, testing::Contains(testing::StartsWith("comm:       70 ")));
}

}  // namespace
}  // namespace cnn::bench
