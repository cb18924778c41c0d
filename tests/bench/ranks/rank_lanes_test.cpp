#include "bench/ranks/rank_lanes.h"

#include <gtest/gtest.h>

namespace cnn::bench {
namespace {

Json one_lane(const char* name, double start, double end) {
  return {{{"lane", name}, {"spans", {{{"name", "node"}, {"start", start}, {"end", end}}}}}};
}

TEST(LanesOfRanks, AreTheSameInAnotherProcess) {
  const RankLanes lanes = lanes_of(message_of({.start = 0.1, .lanes = one_lane("x", 1, 0.3)}));
  EXPECT_EQ(lanes.start, 0.1);
  EXPECT_EQ(lanes.lanes, one_lane("x", 1, 0.3));
}

TEST(LanesOfRanks, CountFromWhereTheFirstBegan) {
  const Json ranks = by_one_clock({{.start = 12, .lanes = one_lane("a", 0, 1), .host = "here"},
                                   {.start = 10, .lanes = one_lane("b", 0.5, 3), .host = "there"}});
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0]["lanes"], one_lane("a", 2, 3));
  EXPECT_EQ(ranks[1]["lanes"], one_lane("b", 0.5, 3));
  EXPECT_EQ(ranks[1]["rank"], 1);
  EXPECT_EQ(ranks[1]["host"], "there");
}

TEST(LanesOfRanks, AreAProcessOfTheTraceEach) {
  const Json ranks =
      by_one_clock({{.start = 0, .lanes = one_lane("compute", 0, 1), .host = "h"},
                    {.start = 0, .lanes = one_lane("compute", 0.25, 1), .host = "h"}});
  const Json trace = Json::parse(chrome_trace_of_ranks(ranks));
  const Json& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 6U);
  EXPECT_EQ(events[3]["args"]["name"], "rank 1 on h");
  EXPECT_EQ(events[5], Json({{"name", "node"},
                             {"ph", "X"},
                             {"pid", 1},
                             {"tid", 0},
                             {"ts", 250000.0},
                             {"dur", 750000.0}}));
}

TEST(ExchangeLine, HasTheMeansOfARanksStep) {
  Json ranks = {{{"exchange_seconds", 0.5},
                 {"exchange_cpu_seconds", 0.25},
                 {"exposed_exchange_seconds", 0.125}},
                {{"exchange_seconds", 1.5},
                 {"exchange_cpu_seconds", 0.25},
                 {"exposed_exchange_seconds", 0.125}}};
  EXPECT_EQ(exchange_line(ranks, 10),
            "comm: exchange 100.000 ms a step, 25.000 ms of it on a processor; computing stood "
            "still for 12.500 ms (12.5 %)");
  ranks[1]["exposed_exchange_seconds"] = nullptr;
  EXPECT_EQ(exchange_line(ranks, 10),
            "comm: exchange 100.000 ms a step, 25.000 ms of it on a processor");
  ranks[0]["exchange_seconds"] = ranks[1]["exchange_seconds"] = 0;
  EXPECT_EQ(exchange_line(ranks, 10), "");
}

}  // namespace
}  // namespace cnn::bench
