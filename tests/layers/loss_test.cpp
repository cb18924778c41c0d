#include "layers/loss.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "layers/operands.h"
#include "runtime/error.h"
#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using testing::ThrowsMessage;
using tests::floats;
using tests::run;
using tests::tensor;

constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

TEST(Loss, IsTheMeanOfTheNegativeLogarithms) {
  const auto logits = tensor({2, 2}, {0, 0, 1000, 1000 + std::log(3.0F)});
  const auto labels = tensor<std::int32_t>({2}, {0, 1});
  const auto out = run(SoftmaxCrossEntropy(), logits, labels);
  EXPECT_NEAR(floats(out[0])[0], (std::log(2.0) + std::log(4.0 / 3)) / 2, 1e-4);
  EXPECT_THAT(floats(out[1]), Pointwise(FloatNear(1e-4F), {0.5F, 0.5F, 0.25F, 0.75F}));
  const auto d = run(SoftmaxCrossEntropyBackward(), out[1], labels, tensor({}, {8}));
  EXPECT_THAT(floats(d[0]), Pointwise(FloatNear(1e-3F), {-2, 2, 1, -1}));
}

TEST(Loss, RefusesALabelOutsideTheClasses) {
  EXPECT_THAT(([] {
                run(SoftmaxCrossEntropy(), tensor({1, 2}, {0, 0}), tensor<std::int32_t>({1}, {2}));
              }),
              ThrowsMessage<Error>(HasSubstr("label 2 is outside the 2 classes")));
}

TEST(Accuracy, CountsTiesAsHitsAndNanAsMisses) {
  const auto logits = tensor({4, 6}, {1, 0, 0, 0, 0,         0,    // highest: hit in both
                                      1, 2, 3, 4, 5,         6,    // sixth: hit in none
                                      5, 5, 5, 5, 5,         5,    // a tie: hit in both
                                      9, 0, 0, 0, quiet_nan, 0});  // hit in none
  const auto hits = run(Accuracy(), logits, tensor<std::int32_t>({4}, {0, 0, 3, 0}));
  EXPECT_EQ(hits[0].view().as<std::int32_t>()[0], 2);
  EXPECT_EQ(hits[1].view().as<std::int32_t>()[0], 2);
  const auto second =
      run(Accuracy(), tensor({1, 6}, {5, 6, 1, 1, 1, 1}), tensor<std::int32_t>({1}, {0}));
  EXPECT_EQ(second[0].view().as<std::int32_t>()[0], 0);
  EXPECT_EQ(second[1].view().as<std::int32_t>()[0], 1);
}

std::vector<std::int32_t> labels_of(std::int32_t step, std::uint64_t seed) {
  const auto out = run(SyntheticLabels(1000, 10, seed), tensor<std::int32_t>({}, {step}));
  const auto labels = out[0].view().as<std::int32_t>();
  return {labels.begin(), labels.end()};
}

TEST(SyntheticLabels, CoversTheClassesAndChangesWithStepAndSeed) {
  std::vector<int> counts(10);
  for (const std::int32_t label : labels_of(1, 1)) {
    ++counts.at(static_cast<std::size_t>(label));
  }
  EXPECT_THAT(counts, testing::Each(testing::AllOf(testing::Gt(60), testing::Lt(140))));
  EXPECT_EQ(labels_of(1, 1), labels_of(1, 1));
  EXPECT_NE(labels_of(1, 1), labels_of(2, 1));
  EXPECT_NE(labels_of(1, 1), labels_of(1, 2));
}

TEST(Loss, IsTakenInF32) {
  Graph graph({.compute = DataType::bf16});
  const Value logits = graph.input("logits", described({2, 5}, DataType::bf16));
  const Value labels = graph.input("labels", described({2}, DataType::i32));
  const Value loss = softmax_cross_entropy(logits, labels);
  EXPECT_EQ(graph.nodes().front().op->name(), "convert");
  EXPECT_EQ(loss.desc(), described({}, DataType::f32));
}

}  // namespace
}  // namespace cnn::layers
