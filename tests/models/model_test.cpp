#include "models/model.h"

#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "layers/dense.h"
#include "runtime/error.h"
#include "runtime/graph.h"

namespace cnn::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t features = 5, classes = 7;

Value five_features(Value images) {
  return layers::dense(layers::flatten(images), {.units = features});
}
TwoHeads five_and_three_features(Value images) {
  return {five_features(images), layers::dense(layers::flatten(images), {.units = 3})};
}

Model small_model() {
  return {.data_set = "mnist",
          .name = "small",
          .image_size = 2,
          .build = five_features,
          .channels = 1,
          .classes = classes,
          .head_bias = 0.25,
          .build_two_heads = five_and_three_features};
}

struct BuiltHead {
  Graph graph;
  Value images = graph.input("images", {.shape = {4, 1, 2, 2}});
};

// Returns the parameters in the order in which the model appended them.
std::vector<const TensorInfo*> parameters_of(const Graph& graph) {
  std::vector<const TensorInfo*> found;
  for (const TensorInfo& info : graph.tensors()) {
    if (info.role == Role::parameter) {
      found.push_back(&info);
    }
  }
  return found;
}

TEST(Logits, AppendTheLastLayerToTheFeatures) {
  BuiltHead built;
  EXPECT_EQ(logits(small_model(), built.images).desc().shape, Shape({4, classes}));
  const auto parameters = parameters_of(built.graph);
  ASSERT_EQ(parameters.size(), 4U);
  EXPECT_EQ(parameters[2]->desc.shape, Shape({features, classes}));
  EXPECT_EQ(parameters[3]->desc.shape, Shape({classes}));
}

TEST(Logits, AreTheFeaturesOfAModelThatEndsInThem) {
  BuiltHead built;
  Model model = small_model();
  model.ends_in_logits = true;
  EXPECT_EQ(logits(model, built.images).desc().shape, Shape({4, features}));
  EXPECT_EQ(parameters_of(built.graph).size(), 2U);
}

TEST(Logits, RefuseImagesOfOtherChannels) {
  Graph graph;
  const Value colours = graph.input("images", {.shape = {4, 3, 2, 2}});
  const auto message =
      AllOf(HasSubstr("model small"), HasSubstr("images of 1 channels"), HasSubstr("[4, 3, 2, 2]"));
  EXPECT_THAT([&] { logits(small_model(), colours); }, ThrowsMessage<Error>(message));
  EXPECT_THAT([&] { logits_of_two_heads(small_model(), colours); }, ThrowsMessage<Error>(message));
}

TEST(LogitsOfTwoHeads, EndInTheLastLayerOfTheAuxiliaryHead) {
  BuiltHead built;
  const Logits made = logits_of_two_heads(small_model(), built.images);
  EXPECT_EQ(made.main.desc().shape, Shape({4, classes}));
  EXPECT_EQ(made.auxiliary.desc().shape, Shape({4, classes}));
  const auto parameters = parameters_of(built.graph);
  ASSERT_EQ(parameters.size(), 8U);
  EXPECT_EQ(parameters[4]->desc.shape, Shape({features, classes})) << "weights of the main head";
  EXPECT_EQ(parameters[6]->desc.shape, Shape({3, classes}))
      << "weights of the auxiliary head come last";
}

TEST(LogitsOfTwoHeads, NameTheModelsOfTheDataSetThatHaveThem) {
  BuiltHead built;
  Model model = small_model();
  model.build_two_heads = nullptr;
  const auto refusal = [&](std::string_view data_set) {
    model.data_set = data_set;
    return [&] { logits_of_two_heads(model, built.images); };
  };
  const std::string start = "--auxiliary_head: small has no auxiliary head; drop the flag";
  EXPECT_THAT(refusal("imagenet"),
              ThrowsMessage<Error>(start + ", or choose inception3 or nasnet or nasnetlarge"));
  EXPECT_THAT(refusal("cifar10"), ThrowsMessage<Error>(start + ", or choose nasnet"));
  EXPECT_THAT(refusal("mnist"), ThrowsMessage<Error>(start));
}

}  // namespace
}  // namespace cnn::models
