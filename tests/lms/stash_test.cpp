#include "lms/stash.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/lms/problem.h"
#include "tests/lms/step_case.h"
#include "tests/support/error_of.h"

namespace cnn::lms {
namespace {

using tests::StepCase;

std::vector<TensorId> tensors(const std::vector<Stashed>& all) {
  std::vector<TensorId> ids;
  ids.reserve(all.size());
  for (const Stashed& one : all) {
    ids.push_back(one.tensor);
  }
  return ids;
}

TEST(Stash, HasTheActivationsThatTheBackwardPassNeeds) {
  const tests::Problem chain = tests::uniform_chain(3);
  const std::vector<Stashed> all = stashed(*chain.graph, chain.schedule, chain.backward);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].bytes, tests::unit);
  EXPECT_EQ(all[0].made, StepId{0});
  EXPECT_EQ(all[0].uses, (std::vector<StepId>{StepId{1}, StepId{5}}));
  EXPECT_EQ(all[0].last_forward, StepId{1});
  EXPECT_EQ(all[0].first_backward, StepId{5});
  EXPECT_EQ(all[0].last, StepId{5});
  EXPECT_EQ(all[2].last_forward, all[2].made) << "no later step of the forward pass reads it";
}

TEST(Stash, LeavesOutOutputsOfTheGraph) {
  StepCase c;
  const Value a = c.make("conv", {c.images()});
  const Value first = c.make("loss_backward", {a});
  c.make("conv_backward", {first, a});
  c.settle(first);
  EXPECT_EQ(tensors(stashed(*c.graph, c.schedule, c.backward)), std::vector<TensorId>{a.id});
  c.graph->output("a", a);
  EXPECT_TRUE(stashed(*c.graph, c.schedule, c.backward).empty());
}

TEST(Stash, ListsTheOuterTensorOfParts) {
  StepCase c;
  const Value a = c.make("conv", {c.images()});
  const Value whole = c.make_image("concat", {a}, 2);
  const Value first = c.make("loss_backward", {whole});
  c.make("concat_backward", {first, a});
  c.graph->place_inside(a.id, whole.id, 0);
  c.settle(first);
  EXPECT_EQ(tensors(stashed(*c.graph, c.schedule, c.backward)), std::vector<TensorId>{whole.id});
}

class StashCandidates : public ::testing::Test {
 protected:
  StashCandidates() {
    small_ = c_.make("conv", {c_.images()});
    large_ = c_.make_image("relu", {small_}, 4);
    const Value first = c_.make("loss_backward", {large_});
    c_.make("backward", {first, small_, large_});
    c_.settle(first);
  }
  std::vector<TensorId> found() const { return tensors(candidates(c_.request())); }
  Options& options() { return c_.options; }
  TensorId small() const { return small_.id; }
  TensorId large() const { return large_.id; }
  const std::string& name_of(TensorId id) const { return c_.graph->info(id).name; }

 private:
  StepCase c_;
  Value small_, large_;
};

TEST_F(StashCandidates, AreAllWithoutOptions) {
  EXPECT_EQ(found(), (std::vector<TensorId>{small(), large()}));
}

TEST_F(StashCandidates, KeepSmallTensors) {
  options().size_threshold = 2 * tests::unit;
  EXPECT_EQ(found(), std::vector<TensorId>{large()});
}

TEST_F(StashCandidates, FollowNamesOfTensors) {
  options().included_ops = {name_of(small())};
  EXPECT_EQ(found(), std::vector<TensorId>{small()});
  options().included_ops = {};
  options().excluded_ops = {name_of(small())};
  EXPECT_EQ(found(), std::vector<TensorId>{large()});
}

TEST_F(StashCandidates, FollowTypesOfOps) {
  options().included_types = {"relu"};
  EXPECT_EQ(found(), std::vector<TensorId>{large()});
  options().included_types = {};
  options().excluded_types = {"re.u"};
  EXPECT_EQ(found(), std::vector<TensorId>{small()});
}

TEST_F(StashCandidates, NameAnExpressionThatIsNotRegular) {
  options().excluded_types = {"("};
  EXPECT_EQ(tests::error_of([&] { found(); }),
            "'(' is not a regular expression of ops to include or exclude");
}

TEST(NameFilter, MatchesAPartOfANameWithOneOfItsExpressions) {
  const NameFilter filter({"^conv[0-9]", "pool"});
  EXPECT_FALSE(filter.is_empty());
  EXPECT_TRUE(filter.matches("conv1#0"));
  EXPECT_TRUE(filter.matches("max_pool"));
  EXPECT_FALSE(filter.matches("my_conv1"));
  EXPECT_TRUE(NameFilter({}).is_empty());
  EXPECT_FALSE(NameFilter({}).matches(""));
}

TEST(NameFilter, QuotesTheTextThatIsNoRegularExpression) {
  EXPECT_EQ(tests::error_of([] {
              NameFilter({"conv", "*"});
            }),
            "'*' is not a regular expression of ops to include or exclude");
}

}  // namespace
}  // namespace cnn::lms
