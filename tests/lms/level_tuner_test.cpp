#include "lms/level_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "lms/stash.h"
#include "tests/lms/chain_step.h"

namespace cnn::lms {
namespace {

using ::testing::ElementsAre;

// A chain in an arena of a given number of images.
class TunedChain {
 public:
  TunedChain(std::size_t layers, std::size_t images) : case_(chain_within(layers, images)) {}

  LevelParameters tune(const LevelParameters& given) { return tuner().tune(given); }
  bool is_unnecessary(const LevelParameters& given) { return tuner().is_unnecessary(given); }
  bool passes(const LevelParameters& parameters) const {
    return simulator_.play(parameters).passed;
  }
  std::int64_t levels() const { return static_cast<std::int64_t>(levels_.count()); }
  std::size_t logged() const { return logged_; }

 private:
  static tests::StepCase chain_within(std::size_t layers, std::size_t images) {
    tests::StepCase c = tests::chain_step(layers);
    c.budget.device = images * 64;
    return c;
  }
  LevelTuner tuner() {
    return {simulator_, levels(), [this](const LevelParameters& parameters, const auto& outcome) {
              EXPECT_TRUE(outcome.passed);
              EXPECT_TRUE(passes(parameters));
              ++logged_;
            }};
  }

  tests::StepCase case_;
  Request request_ = case_.request();
  Levels levels_{*case_.graph, case_.schedule};
  std::vector<Stashed> tensors_ = candidates(request_);
  LevelSwaps swaps_{request_, levels_, tensors_};
  LevelSimulator simulator_{request_, levels_, swaps_};
  std::size_t logged_ = 0;
};

TEST(LevelTuner, IsUnnecessaryWhereTheStepPassesAsItIs) {
  EXPECT_TRUE(TunedChain(10, 12).is_unnecessary({}));
  EXPECT_FALSE(TunedChain(10, 11).is_unnecessary({})) << "memory must exceed the peak";
  EXPECT_FALSE(TunedChain(10, 12).is_unnecessary({.threshold = 3})) << "the caller requests a swap";
  EXPECT_FALSE(TunedChain(10, 12).is_unnecessary({.ahead = 1}));
  EXPECT_FALSE(TunedChain(10, 12).is_unnecessary({.groupby = 0}));
}

TEST(LevelTuner, FindsTheFurthestThresholdThenTheEarliestCopies) {
  TunedChain chain(20, 15);
  const LevelParameters found = chain.tune({});
  EXPECT_EQ(found.sync, SyncMode::none);
  EXPECT_TRUE(chain.passes(found));
  EXPECT_FALSE(chain.passes({.threshold = found.threshold + 1, .ahead = 1, .groupby = 0}));
  EXPECT_FALSE(
      chain.passes({.threshold = found.threshold, .ahead = found.ahead + 1, .groupby = 0}));
  EXPECT_EQ(found.groupby, chain.levels()) << "one far reader each: the largest groups do no harm";
  EXPECT_GT(chain.logged(), 3U);
}

TEST(LevelTuner, LeavesWhatIsGiven) {
  TunedChain chain(20, 15);
  const LevelParameters threshold = chain.tune({.threshold = 2});
  EXPECT_EQ(threshold.threshold, 2);
  EXPECT_GE(threshold.ahead, 1);
  const LevelParameters ahead = chain.tune({.ahead = 3});
  EXPECT_EQ(ahead.ahead, 3);
  EXPECT_TRUE(chain.passes(ahead));
  const LevelParameters all = chain.tune({.threshold = 5, .ahead = 2, .groupby = 1});
  EXPECT_EQ(all.threshold, 5);
  EXPECT_EQ(all.ahead, 2);
  EXPECT_EQ(all.groupby, 1);
}

TEST(LevelTuner, NeedsNeitherTriggersNorGroupsForCopiesThatAreWaitedFor) {
  for (const SyncMode sync : {SyncMode::in, SyncMode::both}) {
    const LevelParameters found = TunedChain(20, 15).tune({.sync = sync});
    EXPECT_EQ(found.sync, sync);
    EXPECT_GT(found.threshold, 1);
    EXPECT_EQ(found.ahead, -1);
    EXPECT_EQ(found.groupby, -1);
  }
}

TEST(LevelTuner, WaitsForCopiesOnlyWhereItMust) {
  SyncMode before = SyncMode::both;
  for (std::size_t images = 3; images <= 8; ++images) {
    const LevelParameters found = TunedChain(20, images).tune({});
    EXPECT_LE(found.sync, before) << images;
    before = found.sync;
  }
  EXPECT_EQ(before, SyncMode::none);
}

TEST(LevelTuner, LetsEverythingLeaveWhereNothingPasses) {
  TunedChain chain(20, 1);
  const LevelParameters found = chain.tune({.groupby = 7});
  EXPECT_EQ(found.threshold, 1);
  EXPECT_EQ(found.groupby, 7);
  EXPECT_EQ(found.sync, SyncMode::both);
  EXPECT_EQ(chain.logged(), 0U);
  const LevelParameters given = chain.tune({.threshold = 4});
  EXPECT_EQ(given.threshold, 4) << "the user's";
  EXPECT_EQ(given.sync, SyncMode::both);
}

// Records the parameters that the tuner tries if none of them fits.
std::vector<std::string> tried(const LevelParameters& given, std::int64_t levels) {
  std::vector<std::string> all;
  EXPECT_FALSE(tune_by_placement(given, levels, [&](const LevelParameters& p) {
    all.push_back(std::to_string(p.threshold) + "/" + std::to_string(p.ahead) + "/" +
                  std::to_string(p.groupby) + "/" + std::to_string(static_cast<int>(p.sync)));
    return false;
  }));
  return all;
}

TEST(TuneByPlacement, TriesThresholdsFromTheFurthestInEachMode) {
  EXPECT_THAT(tried({}, 2), ElementsAre("2/1/0/0", "1/1/0/0", "2/1/0/1", "1/1/0/1", "2/1/0/2",
                                        "1/1/0/2", "2/1/0/3", "1/1/0/3"));
  EXPECT_THAT(tried({.sync = SyncMode::both}, 2), ElementsAre("2/1/0/3", "1/1/0/3"));
}

TEST(TuneByPlacement, ChangesOnlyTheModeOfWhatIsGiven) {
  EXPECT_THAT(tried({.threshold = 9, .ahead = 4, .groupby = 2, .sync = SyncMode::in}, 3),
              ElementsAre("9/4/2/2", "9/4/2/3"));
}

TEST(TuneByPlacement, ReturnsTheFirstThatFits) {
  const auto found = tune_by_placement({}, 50, [](const LevelParameters& p) {
    return p.sync == SyncMode::out && p.threshold % 20 == 0;
  });
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->threshold, 40);
  EXPECT_EQ(found->sync, SyncMode::out);
  EXPECT_EQ(found->ahead, 1);
}

}  // namespace
}  // namespace cnn::lms
