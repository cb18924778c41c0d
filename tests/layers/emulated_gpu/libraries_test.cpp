// Tests how the libraries choose engines on the emulated GPU: by time, as another rank chose, and
// after an engine refused to run.

#include "layers/cuda/cudnn/libraries.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "tests/layers/emulated_gpu/live_libraries.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(LiveLibraries, ChooseWhatTheFirstRankHasChosenAndTimeNothing) {
  const auto first = make({.tune = true});
  const auto chosen = first->choose("key", build_convolution);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(first->counts().tuned, 1U);
  const auto other = make({.tune = true});
  other->adopt(first->choices_text());
  EXPECT_EQ(other->choose("key", build_convolution), chosen);
  EXPECT_EQ(other->counts().adopted, 1U);
  EXPECT_EQ(other->counts().tuned, 0U);
  EXPECT_EQ(other->choices_text(), first->choices_text());
}

TEST_F(LiveLibraries, HaveNoEngineWhereTheFirstRankHasNone) {
  const auto libraries = make();
  libraries->adopt("key\tnone\nother key\t3\t-\t0\n");
  EXPECT_FALSE(libraries->choose("key", build_convolution));
  EXPECT_EQ(libraries->choose("other key", build_convolution)->engine, 3);
}

TEST_F(LiveLibraries, NameAnEngineOfTheFirstRankThatIsNotThere) {
  const auto libraries = make();
  libraries->adopt("key\t77\t-\t0\n");
  try {
    libraries->choose("key", build_convolution);
    FAIL() << "an engine was chosen";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("cannot run engine 77 knobs - for key, which rank 0 has chosen"),
                      HasSubstr("use GPUs of one kind")));
  }
}

TEST_F(LiveLibraries, MeasureANodeOnceAndRememberItAsTheCacheDoes) {
  const auto libraries = make({.tune = true});
  int measured = 0;
  const auto measure = [&] {
    ++measured;
    return std::optional(1.23456789e-4);
  };
  EXPECT_EQ(libraries->node_seconds("a node", measure), 1.23457e-4);
  EXPECT_EQ(libraries->node_seconds("a node", measure), 1.23457e-4);
  EXPECT_EQ(measured, 1);
  EXPECT_EQ(libraries->counts().timed_nodes, 1U);
  EXPECT_EQ(make({.tune = true})->node_seconds("a node", measure), 1.23457e-4) << "a later run";
  EXPECT_EQ(measured, 1);
  const auto nothing = [] { return std::optional<double>(); };
  EXPECT_EQ(libraries->node_seconds("a node that does not fit", nothing), std::nullopt);
}

// Nodes run kernels of ours, which another build may have changed.
TEST_F(LiveLibraries, MeasureNodesAgainForAnotherBuildOfTheProgram) {
  const auto taking = [](double seconds) { return [seconds] { return std::optional(seconds); }; };
  make({.tune = true, .build = "one"})->node_seconds("a node", taking(2e-5));
  EXPECT_EQ(make({.tune = true, .build = "two"})->node_seconds("a node", taking(3e-5)), 3e-5);
  EXPECT_EQ(make({.tune = true, .build = "one"})->node_seconds("a node", taking(9)), 2e-5);
}

TEST_F(LiveLibraries, TakeTheFirstEngineWhereNoneRunsWhileTuning) {
  setenv("CNN_EMULATED_REFUSING_ENGINE", "all", 1);
  const auto libraries = make({.tune = true});
  EXPECT_TRUE(libraries->choose("a convolution", build_convolution));
  unsetenv("CNN_EMULATED_REFUSING_ENGINE");
  EXPECT_EQ(libraries->counts().tuned, 0U);
  EXPECT_EQ(libraries->counts().guessed, 1U);
  EXPECT_THAT(libraries->take_notes(),
              testing::ElementsAre(
                  AllOf(HasSubstr("a convolution is not tuned"), HasSubstr("refuses to run"))));
}

TEST_F(LiveLibraries, MeasureNoNodeWithoutTuningOrAfterItsSeconds) {
  const auto never = []() -> std::optional<double> {
    ADD_FAILURE() << "an engine was timed";
    return 1.0;
  };
  EXPECT_EQ(make()->node_seconds("a node", never), std::nullopt);
  EXPECT_EQ(make({.tune = true, .tune_seconds = 0})->node_seconds("a node", never), std::nullopt);
  const auto stopped = make({.tune = true});
  stopped->stop_tuning();
  EXPECT_EQ(stopped->node_seconds("a node", never), std::nullopt);
}

TEST_F(LiveLibraries, KnowTheSecondsOfNodesThatTheFirstRankKnowsAndNoOthers) {
  const auto first = make({.tune = true});
  const auto taking = [](double seconds) { return [seconds] { return std::optional(seconds); }; };
  first->node_seconds("a node", taking(2e-5));
  const auto other = make({.tune = true});
  other->node_seconds("a node that the first rank has not", taking(3e-5));
  other->adopt(first->choices_text());
  EXPECT_EQ(other->node_seconds("a node", taking(9)), 2e-5);
  EXPECT_EQ(other->node_seconds("a node that the first rank has not", taking(9)), std::nullopt);
  EXPECT_EQ(other->choices_text(), first->choices_text());
  EXPECT_THROW(other->adopt("a node\tseconds\tfew\n"), Error);
}

TEST_F(LiveLibraries, ForgetTheSecondsOfNodesForOtherRanksToo) {
  const auto first = make({.tune = true});
  const auto measure = [] { return std::optional(2e-5); };
  first->node_seconds("a node", measure);
  first->forget_node_seconds();
  EXPECT_EQ(first->node_seconds("a node", measure), std::nullopt);
  EXPECT_EQ(first->choices_text(), "");
}

TEST_F(LiveLibraries, RefuseChoicesThatCannotBeRead) {
  EXPECT_THROW(make()->adopt("key\t3\t-"), Error);
  EXPECT_THROW(make()->adopt("key"), Error);
}

}  // namespace
}  // namespace cnn::tests
