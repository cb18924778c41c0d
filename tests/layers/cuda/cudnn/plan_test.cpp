#include "layers/cuda/cudnn/plan.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/cuda/conv_graph.h"
#include "runtime/error.h"
#include "tests/layers/cuda/cudnn/h200.h"

namespace cnn::tests {
namespace {

using namespace layers::cuda;

constexpr layers::Window same_3x3{
    .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_bottom = 1, .pad_left = 1, .pad_right = 1};

// Returns a convolution of ResNet-50's first stage.
ConvGraph layer(Direction direction, DataType type) {
  return {.direction = direction,
          .type = type,
          .x = {256, 64, 56, 56},
          .w = {64, 64, 3, 3},
          .y = {256, 64, 56, 56},
          .window = same_3x3};
}

std::vector<Choice> choices(const ConvGraph& graph, const Limits& limits = {},
                            std::size_t at_most = 1) {
  const Target target = Target::described(h200().device_json);
  return candidates(NativeGraph(operations_of(graph), target), limits, at_most);
}

class EveryDirection : public testing::TestWithParam<std::tuple<Direction, DataType>> {};

TEST_P(EveryDirection, HasAnEngineWithoutADevice) {
  const auto [direction, type] = GetParam();
  const std::vector<Choice> found = choices(layer(direction, type));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_LE(found[0].workspace, std::size_t{8} << 20U);
}

INSTANTIATE_TEST_SUITE_P(
    H200, EveryDirection,
    testing::Combine(testing::Values(Direction::forward, Direction::backward_data,
                                     Direction::backward_weights),
                     testing::Values(DataType::f16, DataType::bf16, DataType::f32)));

TEST(Cudnn, PadsTheTwoSidesOfAnImageDifferently) {
  ConvGraph graph = layer(Direction::forward, DataType::f16);
  graph.window = {
      .kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_bottom = 1, .pad_right = 1};
  graph.y = {256, 64, 28, 28};
  EXPECT_EQ(choices(graph).size(), 1U);
  graph.window.pad_bottom = 3;  // now the output's size does not match
  EXPECT_THROW(choices(graph), Error);
}

TEST(Cudnn, AddsABiasAndAReluToAForwardConvolution) {
  ConvGraph graph = layer(Direction::forward, DataType::f16);
  graph.bias = true;
  EXPECT_EQ(choices(graph).size(), 1U);
  graph.relu = true;
  EXPECT_EQ(choices(graph).size(), 1U);
}

TEST(Cudnn, OffersAsManyChoicesAsAreAskedForAndNoneTwice) {
  const std::vector<Choice> found = choices(layer(Direction::forward, DataType::f16), {}, 8);
  ASSERT_EQ(found.size(), 8U);
  for (auto choice = found.begin(); choice != found.end(); ++choice) {
    EXPECT_EQ(std::count(choice, found.end(), *choice), 1) << to_string(*choice);
  }
}

TEST(Cudnn, BuildsAPlanFromAChoiceAsData) {
  const ConvGraph graph = layer(Direction::backward_weights, DataType::f16);
  const Choice choice = choices(graph).front();
  const Target target = Target::described(h200().device_json);
  const NativeGraph native(operations_of(graph), target);
  EXPECT_EQ(Plan(native, choice).workspace(), choice.workspace);
}

TEST(Cudnn, RefusesAChoiceThatItDoesNotHave) {
  const Target target = Target::described(h200().device_json);
  const NativeGraph native(operations_of(layer(Direction::forward, DataType::f16)), target);
  Choice choice;
  choice.engine = 99999;
  EXPECT_THROW(Plan(native, choice), Error);
}

// For this graph, the first engine adds by atomics in arbitrary order.
TEST(Cudnn, KeepsToDeterministicEnginesUnlessToldOtherwise) {
  const ConvGraph graph{.direction = Direction::backward_weights,
                        .type = DataType::f32,
                        .x = {512, 1, 28, 28},
                        .w = {32, 1, 5, 5},
                        .y = {512, 32, 28, 28},
                        .window = {.kernel_h = 5,
                                   .kernel_w = 5,
                                   .pad_top = 2,
                                   .pad_bottom = 2,
                                   .pad_left = 2,
                                   .pad_right = 2}};
  const Choice any = choices(graph, {.deterministic = false}).front();
  const std::vector<Choice> deterministic = choices(graph, {}, 100);
  EXPECT_FALSE(deterministic.empty());
  EXPECT_THAT(deterministic, testing::Not(testing::Contains(any)));
}

TEST(Cudnn, UsesNoTensorCoresForStrictF32) {
  const ConvGraph graph = layer(Direction::forward, DataType::f32);
  const Choice tf32 = choices(graph).front();
  const std::vector<Choice> strict = choices(graph, {.strict_f32 = true}, 100);
  EXPECT_FALSE(strict.empty());
  EXPECT_THAT(strict, testing::Not(testing::Contains(tf32)));
}

TEST(Cudnn, TakesTheSmallestWorkspaceWhereNothingFits) {
  const ConvGraph graph = layer(Direction::forward, DataType::f16);
  const std::vector<Choice> all = choices(graph, {}, 100);
  const std::size_t smallest = std::ranges::min(all, {}, &Choice::workspace).workspace;
  ASSERT_EQ(smallest, 0U);
  EXPECT_EQ(choices(graph, {.workspace = 100}).front().workspace, 0U);
}

TEST(Cudnn, RejectsADescriptionThatIsNone) { EXPECT_THROW(Target::described("{"), Error); }

TEST(Cudnn, WritesVersionsWithPoints) { EXPECT_EQ(cudnn_version_text(91900), "9.19.0"); }

}  // namespace
}  // namespace cnn::tests
