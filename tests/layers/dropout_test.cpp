#include "layers/dropout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/operands.h"
#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using tests::floats;
using tests::run;
using tests::tensor;

TEST(Dropout, KeepsTheAskedShareAndScalesIt) {
  const auto x = tensor({10'000}, std::vector<float>(10'000, 3));
  const auto y = run(Dropout(0.75, 5), x, tensor<std::int32_t>({}, {2}));
  const auto kept = std::ranges::count(floats(y[0]), 4.0F);
  EXPECT_EQ(kept + std::ranges::count(floats(y[0]), 0.0F), 10'000);
  EXPECT_NEAR(static_cast<double>(kept), 7500, 150);
}

TEST(Dropout, DrawsItsMaskFromSeedStepAndPosition) {
  const auto mask = [](std::uint64_t seed, std::int32_t step) {
    std::vector<bool> result;
    for (std::uint64_t i = 0; i < 100; ++i) {
      result.push_back(keeps(seed, step, i, 0.5));
    }
    return result;
  };
  EXPECT_EQ(mask(1, 1), mask(1, 1));
  EXPECT_NE(mask(1, 1), mask(1, 2));
  EXPECT_NE(mask(1, 1), mask(2, 1));
  EXPECT_TRUE(keeps(1, 1, 1, 1));
  EXPECT_FALSE(keeps(1, 1, 1, 0));
}

TEST(Dropout, IsLeftOutWhereItIsOff) {
  for (const Traits& traits : {Traits{.training = false}, Traits{.dropout = false}}) {
    Graph graph(traits);
    const Value x = graph.input("x", described({5}, DataType::f32));
    EXPECT_EQ(dropout(x, 0.5), x);
    EXPECT_FALSE(graph.find("global_step"));
  }
}

TEST(Dropout, HasMasksOfItsOwnInEveryLayer) {
  Graph graph;
  const Value x = graph.input("x", described({5}, DataType::f32));
  dropout(dropout(x, 0.5), 0.5);
  const auto seed = [&](std::size_t node) {
    return dynamic_cast<const Dropout&>(*graph.nodes()[node].op).seed;
  };
  EXPECT_NE(seed(0), seed(1));
  // Both nodes read the same global_step.
  EXPECT_EQ(graph.nodes()[0].inputs[1], graph.nodes()[1].inputs[1]);
}

}  // namespace
}  // namespace cnn::layers
