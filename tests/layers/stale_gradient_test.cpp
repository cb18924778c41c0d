#include "layers/stale_gradient.h"

#include <gtest/gtest.h>
#include <vector>

#include "layers/operands.h"
#include "layers/optimizer.h"
#include "tests/support/interpreter.h"

namespace cnn::layers {
namespace {

// Returns the values of a scalar parameter that starts at 2, with weight decay 1/4 and learning
// rate 1/2.
std::vector<float> values_by_stale_gradients(bool decays, const std::vector<float>& gradients) {
  Graph graph;
  OptimizerOptions options;
  options.update.rule = Rule::sgd;
  options.update.weight_decay = 0.25;
  const TensorDesc scalar = described({}, DataType::f32);
  const std::vector<Value> w{graph.parameter("w", scalar, {.initializer = {}, .decay = decays})};
  std::vector<Value> g{graph.input("g", scalar)};
  append_stale_gradients(w, g, options.update.weight_decay);
  graph.output("l2", append_update(graph, w, g, options));
  tests::Interpreter values(graph);
  values.floats("w")[0] = 2;
  values.floats("w/stale_gradient")[0] = 0;
  values.floats("learning_rate")[0] = 0.5;
  std::vector<float> seen;
  for (const float gradient : gradients) {
    values.floats("g")[0] = gradient;
    values.run();
    seen.push_back(values.floats("w")[0]);
  }
  return seen;
}

TEST(StaleGradient, IsThatOfTheStepBeforeAndZeroAtFirst) {
  EXPECT_EQ(values_by_stale_gradients(false, {3, 5, 7}), (std::vector<float>{2, 0.5, -2}));
}

// The gradients with decay are 3 + 2/4 and 5 + 2/4, because the weight was 2 in both steps.
TEST(StaleGradient, ComesWithTheWeightDecayOfItsOwnStep) {
  EXPECT_EQ(values_by_stale_gradients(true, {3, 5, 7}), (std::vector<float>{2, 0.25, -2.5}));
}

}  // namespace
}  // namespace cnn::layers
