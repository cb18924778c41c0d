// Tests the figures that the ranks of a team report to rank 0 when a run ends.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/session/session.h"
#include "bench/session/team.h"
#include "tests/bench/session/small_team.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

const std::vector<std::string> replicated{"--num_gpus=2", "--variable_update=replicated",
                                          "--comm_calibrate=off"};

TEST(TeamRecords, DivideTheSpeedAndAgreeOnTheWeights) {
  tests::SmallTeam run(replicated);
  run.team.start(0);
  run.team.timing_starts();
  run.team.step(0, 0.1);
  const Json ranks = run.team.ranks_json(50);
  ASSERT_EQ(ranks.size(), 2U);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks[rank]["rank"], rank);
    EXPECT_EQ(ranks[rank]["images_per_sec"], 25.0);
    EXPECT_GT(ranks[rank]["exchange_seconds"], 0);
    EXPECT_NE(ranks[rank]["host"], "");
    EXPECT_EQ(ranks[rank]["weights_hash"].get<std::string>().size(), 16U);
  }
  EXPECT_EQ(ranks[0]["weights_hash"], ranks[1]["weights_hash"]);
}

TEST(TeamRecords, HaveNoExchangeForCopies) {
  tests::SmallTeam run({"--num_gpus=2", "--variable_update=independent"});
  run.team.start(0);
  run.team.step(0, 0.1);
  const Json ranks = run.team.ranks_json(50);
  EXPECT_EQ(ranks[1]["exchange_seconds"], 0.0);
  EXPECT_EQ(ranks[1]["exposed_exchange_seconds"], 0.0);
}

// Returns the name of a variable that a step changes.
std::string first_parameter() {
  const tests::SmallTeam run;
  for (const TensorInfo& info : run.team.first().plan().graph->tensors()) {
    if (info.role == Role::parameter) {
      return info.name;
    }
  }
  return "";
}

TEST(TeamRecords, RefuseRanksThatShouldHaveTrainedAlikeAndHaveNot) {
  std::vector<std::string> flags = replicated;
  flags.push_back("--comm_fault=rank=1,what=flip,step=1,tensor=" + first_parameter());
  tests::SmallTeam run(flags);
  run.team.start(0);
  run.team.step(0, 0.1);
  EXPECT_THAT(tests::error_of([&] { run.team.ranks_json(50); }),
              testing::HasSubstr("the weights of rank 1 are not those of rank 0 at the end"));
}

TEST(TeamRecords, HaveTheLanesOfEachRankByOneClock) {
  tests::SmallTeam run(replicated);
  run.team.start(0);
  Timeline timeline;
  run.team.step(0, 0.1, &timeline);
  const Json lanes = run.team.lanes_of_ranks();
  ASSERT_EQ(lanes.size(), 2U);
  double first = 1;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(lanes[rank]["rank"], rank);
    ASSERT_FALSE(lanes[rank]["lanes"].empty());
    const double start = lanes[rank]["lanes"][0]["spans"][0]["start"];
    EXPECT_GE(start, 0);
    first = std::min(first, start);
  }
  EXPECT_LT(first, 0.5) << "times count from the first rank's start";
}

}  // namespace
}  // namespace cnn::bench
