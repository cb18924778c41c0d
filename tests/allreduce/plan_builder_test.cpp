#include "allreduce/plan_builder.h"

#include <array>
#include <cstddef>
#include <gtest/gtest.h>
#include <variant>
#include <vector>

#include "tests/allreduce/plans.h"

namespace cnn::allreduce {
namespace {

using tests::actions_of;

TEST(Slices, CoverTheRangeAndDifferByOneElementAtMost) {
  for (const std::size_t elements : {0, 1, 7, 64, 1003}) {
    for (const std::size_t parts : {1, 2, 5, 16}) {
      const std::vector<Range> all = slices({10, 10 + elements}, parts);
      std::size_t next = 10;
      for (const Range& one : all) {
        EXPECT_EQ(one.begin, next);
        EXPECT_GE(one.size(), elements / parts);
        EXPECT_LE(one.size(), elements / parts + 1);
        next = one.end;
      }
      EXPECT_EQ(next, 10 + elements);
    }
  }
}

TEST(Group, CountsOffsetsModuloItsSize) {
  const Group group{.ranks = {4, 7, 9}, .self = 1};
  EXPECT_EQ(group.at(0), 7);
  EXPECT_EQ(group.at(1), 9);
  EXPECT_EQ(group.at(2), 4);
  EXPECT_EQ(group.at(-1), 4);
  EXPECT_EQ(group.index(-5), 2U);
}

TEST(PlanBuilder, LeavesOutActionsOnEmptyRanges) {
  const Options options;
  PlanBuilder builder(options);
  builder.begin_chunk();
  builder.send(1, {3, 3});
  builder.receive(1, {3, 3});
  builder.add({3, 3}, builder.receive_to_scratch(1, {3, 3}), true);
  builder.wait();
  const RankPlan plan = std::move(builder).finish();
  ASSERT_EQ(plan.chunks.size(), 1U);
  EXPECT_TRUE(plan.chunks.front().actions.empty());
  EXPECT_EQ(plan.scratch, 0U);
}

TEST(PlanBuilder, WaitsOnceForSeveralMessages) {
  const Options options;
  PlanBuilder builder(options);
  builder.begin_chunk();
  builder.wait();
  builder.send(1, {0, 4});
  builder.wait();
  builder.wait();
  EXPECT_EQ(actions_of<Wait>(std::move(builder).finish().chunks.front()).size(), 1U);
}

TEST(PlanBuilder, ReusesTheScratchAfterASum) {
  const Options options;
  PlanBuilder builder(options);
  builder.begin_chunk();
  for (int round = 0; round < 3; ++round) {
    const Operand first = builder.receive_to_scratch(1, {0, 16});
    const Operand second = builder.receive_to_scratch(2, {0, 16});
    EXPECT_EQ(first.index, 0U);
    EXPECT_EQ(second.index, 16U);
    builder.wait();
    builder.sum({0, 16}, std::array{Operand{}, first, second}, round == 2);
  }
  const RankPlan plan = std::move(builder).finish();
  EXPECT_EQ(plan.scratch, 32U);
  EXPECT_EQ(plan.operands.size(), 9U);
  const std::vector<Sum> sums = actions_of<Sum>(plan.chunks.front());
  ASSERT_EQ(sums.size(), 3U);
  EXPECT_TRUE(sums[2].last);
  EXPECT_FALSE(sums[1].last);
  EXPECT_EQ(plan.operands_of(sums[1])[2].source, Operand::Source::scratch);
}

TEST(PlanBuilder, SeparatesTheScratchOfConcurrentChunks) {
  const Options options{.chunks = 5, .window = 2};
  const RankPlan plan = in_chunks(options, {0, 100}, [](PlanBuilder& builder, Range range) {
    builder.add(range, builder.receive_to_scratch(1, range), true);
  });
  ASSERT_EQ(plan.chunks.size(), 5U);
  EXPECT_TRUE(plan.chunks[1].after.empty());
  EXPECT_EQ(plan.chunks[2].after, std::vector<std::size_t>{0});
  EXPECT_EQ(plan.chunks[4].after, std::vector<std::size_t>{2});
  std::vector<std::size_t> offsets;
  for (const Chunk& chunk : plan.chunks) {
    offsets.push_back(actions_of<Receive>(chunk).front().scratch_offset.value());
  }
  EXPECT_EQ(offsets, (std::vector<std::size_t>{0, 32, 0, 32, 0}))
      << "20 elements, rounded up to cache lines";
  EXPECT_EQ(plan.scratch, 64U);
}

TEST(PlanBuilder, ListsEqualGroupsOnce) {
  const Options options;
  PlanBuilder builder(options);
  builder.begin_chunk();
  builder.barrier({0, 1});
  builder.sum({0, 8}, std::array{Operand{}}, false, std::array{0, 1});
  builder.barrier({1, 2});
  const RankPlan plan = std::move(builder).finish();
  EXPECT_EQ(plan.groups, (std::vector<std::vector<int>>{{0, 1}, {1, 2}}));
  EXPECT_EQ(actions_of<Barrier>(plan.chunks.front())[1].group, 1U);
  EXPECT_EQ(actions_of<Sum>(plan.chunks.front()).front().into, 0U);
}

}  // namespace
}  // namespace cnn::allreduce
