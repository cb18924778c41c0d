#include "layers/drop_path.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/operands.h"
#include "runtime/error.h"
#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using testing::Each;
using tests::floats;
using tests::run;
using tests::tensor;

constexpr std::uint32_t all = 1U << 24;

TEST(DropPath, KeepsAllAtFirstAndFallsLinearlyToItsShare) {
  const DropPathSchedule schedule{.drop = all / 4, .steps = 1000};
  EXPECT_EQ(schedule.kept(0), all);
  EXPECT_EQ(schedule.kept(500), all - all / 8);
  EXPECT_EQ(schedule.kept(1000), all - all / 4);
  EXPECT_EQ(schedule.kept(1'000'000'000), all - all / 4);
  EXPECT_EQ(schedule.kept(-1), all);
}

TEST(DropPath, KeepsOrDropsWholeExamplesAndScalesTheRest) {
  constexpr std::int64_t examples = 4000;
  const auto x = tensor({examples, 3}, std::vector<float>(3 * examples, 3));
  const DropPath op({all / 4, 10}, 7);
  const auto y = run(op, x, tensor<std::int32_t>({}, {10}));
  std::int64_t kept = 0;
  for (std::size_t n = 0; n < examples; ++n) {
    const bool keeps = keeps_path(op, 10, n);
    EXPECT_THAT(floats(y[0]).subspan(3 * n, 3), Each(keeps ? 4.0F : 0.0F)) << n;
    kept += keeps ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(kept), 3000, 100);
}

TEST(DropPath, DropsNothingInTheFirstStep) {
  const auto x = tensor({100}, std::vector<float>(100, 2));
  EXPECT_THAT(floats(run(DropPath({all / 2, 9}, 1), x, tensor<std::int32_t>({}, {0}))[0]),
              Each(2.0F));
}

TEST(DropPath, DrawsItsMaskFromSeedStepAndExample) {
  const auto mask = [](std::uint64_t seed, std::int32_t step) {
    std::vector<bool> result;
    for (std::uint64_t n = 0; n < 100; ++n) {
      result.push_back(keeps_path(DropPath({all / 2, 1}, seed), step, n));
    }
    return result;
  };
  EXPECT_EQ(mask(1, 5), mask(1, 5));
  EXPECT_NE(mask(1, 5), mask(1, 6));
  EXPECT_NE(mask(1, 5), mask(2, 5));
}

TEST(DropPath, KeepsANanThatItDrops) {
  const DropPath op({all - 1, 1}, 3);
  const auto y = run(op, tensor({1}, {std::nanf("")}), tensor<std::int32_t>({}, {1}));
  ASSERT_FALSE(keeps_path(op, 1, 0));
  EXPECT_TRUE(std::isnan(floats(y[0])[0]));
}

TEST(DropPath, IsLeftOutWhereItIsOff) {
  for (const Traits& traits : {Traits{.training = false}, Traits{.dropout = false}}) {
    Graph graph(traits);
    const Value x = graph.input("x", described({5}, DataType::f32));
    EXPECT_EQ(drop_path(x, 0.5, 10), x);
    EXPECT_FALSE(graph.find("global_step"));
  }
  Graph graph;
  const Value x = graph.input("x", described({5}, DataType::f32));
  EXPECT_EQ(drop_path(x, 0, 10), x);
}

TEST(DropPath, HasMasksOfItsOwnInEveryBranch) {
  Graph graph;
  const Value x = graph.input("x", described({5}, DataType::f32));
  drop_path(drop_path(x, 0.5, 10), 0.5, 10);
  const auto op = [&](std::size_t node) {
    return dynamic_cast<const DropPath&>(*graph.nodes()[node].op);
  };
  EXPECT_NE(op(0).seed, op(1).seed);
  EXPECT_EQ(op(0).schedule.drop, all / 2);
}

TEST(DropPath, RefusesToDropAll) {
  Graph graph;
  const Value x = graph.input("x", described({5}, DataType::f32));
  EXPECT_THROW(drop_path(x, 1, 10), Error);
}

}  // namespace
}  // namespace cnn::layers
