// Tests how a team checks the data that its ranks report about themselves before it trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "bench/session/rank_check.h"
#include "bench/session/team.h"
#include "bench/session/tensor_hashes.h"
#include "tests/bench/session/small_team.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::string> compared{"--variable_update=independent", "--comm_check=majority"};

std::vector<std::string> also(std::vector<std::string> flags,
                              const std::vector<std::string>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST(TeamCheck, FindsNothingInRanksThatComputeAlike) {
  tests::SmallTeam run(also(compared, {"--num_gpus=2"}));
  run.team.start(0);
  run.team.step(0, 0.1);
  EXPECT_EQ(tests::error_of([&] { run.team.step(1, 0.1); }), "");
}

TEST(TeamCheck, NamesTheRankOfThreeThatComputesDifferently) {
  tests::SmallTeam run(also(compared, {"--num_gpus=3", "--comm_fault=rank=2,what=flip,step=2"}));
  run.team.start(0);
  run.team.step(0, 0.1);
  try {
    run.team.step(1, 0.1);
    FAIL() << "nobody noticed";
  } catch (const RanksDiffer& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 2 (host "), HasSubstr("global step 2")));
  }
}

TEST(TeamCheck, RefusesAFaultOfARankThatIsNotThere) {
  tests::SmallTeam run({"--comm_fault=rank=3,what=flip,step=2"});
  EXPECT_THAT(tests::error_of([&] { run.team.start(0); }), HasSubstr("there is 1 rank, from 0 on"));
}

TEST(TeamCheck, HashesOnlyTheStepsAskedFor) {
  const tests::TemporaryFolder folder;
  tests::SmallTeam run({"--hash_file=" + (folder / "hashes"), "--hash_steps=2"});
  run.team.start(0);
  EXPECT_NE(run.team.hashed_tensors(), nullptr);
  run.team.step(0, 0.1);
  EXPECT_EQ(run.team.hashes(), nullptr);
  run.team.step(1, 0.1);
  ASSERT_NE(run.team.hashes(), nullptr);
  EXPECT_FALSE(run.team.hashes()->hashes().empty());
}

TEST(TeamCheck, HashesNothingUnasked) {
  tests::SmallTeam run;
  run.team.start(0);
  run.team.step(0, 0.1);
  EXPECT_EQ(run.team.hashed_tensors(), nullptr);
  EXPECT_EQ(run.team.hashes(), nullptr);
}

TEST(TeamCheck, NamesTheFirstTensorInMemoryThatIsNotFinite) {
  tests::SmallTeam run;
  run.team.start(0);
  run.team.step(0, 0.1);
  EXPECT_EQ(run.team.first_non_finite(Team::Which::main).tensor, "");
  run.team.step(1, std::numeric_limits<double>::infinity());
  const FirstNonFinite found = run.team.first_non_finite(Team::Which::main);
  EXPECT_THAT(found.tensor, testing::StartsWith("learning_rate"));
  EXPECT_FALSE(found.of_whole_step);
}

TEST(TeamCheck, LooksAtAllOfTheStepThatAFlagNames) {
  tests::SmallTeam run({"--check_finite_step=2"});
  run.team.start(0);
  run.team.step(0, 0.1);
  EXPECT_FALSE(run.team.first_non_finite(Team::Which::main).of_whole_step);
  run.team.step(1, 0.1);
  EXPECT_TRUE(run.team.first_non_finite(Team::Which::main).of_whole_step);
  EXPECT_EQ(run.team.first_non_finite(Team::Which::main).tensor, "");
}

TEST(TeamCheck, NamesTheRankWhereThereAreSeveral) {
  tests::SmallTeam run({"--num_gpus=2", "--variable_update=independent"});
  run.team.start(0);
  run.team.step(0, std::numeric_limits<double>::infinity());
  EXPECT_THAT(run.team.first_non_finite(Team::Which::main).tensor, testing::EndsWith(" of rank 0"));
}

}  // namespace
}  // namespace cnn::bench
