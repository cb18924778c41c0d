#include "lms/levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lms/chain_step.h"

namespace cnn::lms {
namespace {

using ::testing::ElementsAre;

TEST(Levels, AreOneMoreThanThoseOfWhatIsRead) {
  const tests::StepCase c = tests::chain_step(2);
  const Levels levels(*c.graph, c.schedule);
  EXPECT_EQ(levels.count(), 6U);
  EXPECT_THAT(levels.at(0), ElementsAre(NodeId{0}));
  EXPECT_THAT(levels.at(3), ElementsAre(NodeId{3}, NodeId{5})) << "both gradients of conv#1";
  EXPECT_EQ(levels.of(NodeId{6}), 4U);
  EXPECT_THAT(levels.readers(NodeId{0}), ElementsAre(NodeId{1}, NodeId{3}));
  EXPECT_EQ(levels.edges(), 8U);
}

TEST(Levels, KnowWhatReachesWhat) {
  const tests::StepCase c = tests::chain_step(40);
  const Levels levels(*c.graph, c.schedule);
  EXPECT_TRUE(levels.reaches(NodeId{0}, NodeId{159}));
  EXPECT_TRUE(levels.reaches(NodeId{0}, NodeId{1}));
  EXPECT_FALSE(levels.reaches(NodeId{1}, NodeId{0}));
  EXPECT_FALSE(levels.reaches(NodeId{0}, NodeId{0}));
  EXPECT_FALSE(levels.reaches(NodeId{41}, NodeId{43})) << "the two gradients of one layer";
}

TEST(Levels, NameOpsAndOutputsAsTheLogsDo) {
  tests::StepCase c;
  const auto made = c.make_all("batch_norm", {c.images()}, {{.shape = {8}}, {.shape = {4}}});
  EXPECT_EQ(op_text(*c.graph, NodeId{0}), "batch_norm#0");
  EXPECT_EQ(tensor_text(*c.graph, made[1].id), "batch_norm#0:1");
}

}  // namespace
}  // namespace cnn::lms
