#include "layers/passes/hosted_parameters.h"

#include <gtest/gtest.h>
#include <vector>

#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/operands.h"
#include "layers/optimizer.h"
#include "tests/layers/cpu_table.h"

namespace cnn::layers {
namespace {

using tests::plain_table;

bool always(const TensorInfo& /*info*/) { return true; }

constexpr std::int64_t inputs = 16, units = 8;

// A graph whose parameter w has one reader, and an update with the gradient that `make` appends.
class TrainedParameter {
 public:
  template <class Make>
  explicit TrainedParameter(const Make& make) {
    const Value x = input("x", 2, inputs);
    w_ = graph_.parameter("w", described({inputs, units}, DataType::f32), {});
    graph_.output("y", emit(Dense({.bias = false}), {x, w_}));
    const Value gradient = make(*this);
    append_update(graph_, std::span(&w_, 1), std::span(&gradient, 1), {});
  }

  Value input(const char* name, std::int64_t rows, std::int64_t columns) {
    return graph_.input(name, described({rows, columns}, DataType::f32));
  }
  // Appends the gradients of the first rows and of all others.
  std::vector<Value> parts() {
    constexpr std::int64_t first = 6;
    return {scale(input("g0", first, units), 2), scale(input("g1", inputs - first, units), 2)};
  }
  std::vector<Hosted> found() const { return find_hosted(graph_, plain_table(), always); }
  Graph& graph() { return graph_; }

 private:
  Graph graph_;
  Value w_;
};

TEST(HostedParameters, HaveReadersAnUpdateAndAWholeGradient) {
  const TrainedParameter one(
      [](TrainedParameter& self) { return scale(self.input("g", inputs, units), 2); });
  ASSERT_EQ(one.found().size(), 1U);
  const Hosted hosted = one.found().front();
  EXPECT_EQ(hosted.readers, std::vector<NodeIndex>{0});
  EXPECT_TRUE(hosted.is_trained());
  EXPECT_EQ(hosted.joined, no_node);
  ASSERT_EQ(hosted.gradients.size(), 1U);
  EXPECT_EQ(hosted.gradients[0].made, 1U);
  EXPECT_EQ(hosted.gradients[0].first, 0);
}

TEST(HostedParameters, HaveTheGradientsThatAreJoinedForTheirUpdate) {
  const TrainedParameter one([](TrainedParameter& self) { return concat_batch(self.parts()); });
  ASSERT_EQ(one.found().size(), 1U);
  const Hosted hosted = one.found().front();
  EXPECT_EQ(hosted.joined, 3U);
  ASSERT_EQ(hosted.gradients.size(), 2U);
  EXPECT_EQ(hosted.gradients[0].made, 1U);
  EXPECT_EQ(hosted.gradients[1].made, 2U);
  EXPECT_EQ(hosted.gradients[0].first, 0);
  EXPECT_EQ(hosted.gradients[1].first, 6 * units);
}

TEST(HostedParameters, HaveAWholeGradientWhereOthersReadItOrItsParts) {
  const TrainedParameter read_whole([](TrainedParameter& self) {
    const Value whole = concat_batch(self.parts());
    self.graph().output("gradient", whole);
    return whole;
  });
  const TrainedParameter read_part([](TrainedParameter& self) {
    const std::vector<Value> parts = self.parts();
    self.graph().output("part", scale(parts[1], 3));
    return concat_batch(parts);
  });
  for (const TrainedParameter* const one : {&read_whole, &read_part}) {
    ASSERT_EQ(one->found().size(), 1U);
    EXPECT_EQ(one->found().front().joined, no_node);
    EXPECT_EQ(one->found().front().gradients.size(), 1U);
  }
}

TEST(HostedParameters, AreReadByRowsThroughPlainSlices) {
  Graph graph;
  const Value w = graph.parameter("w", described({inputs, units}, DataType::f32), {});
  const Value rows = slice_batch(w, 3, 5);
  scale(rows, 2);
  ASSERT_NE(rows_of_parameter(graph, graph.nodes()[0]), nullptr);
  EXPECT_EQ(rows_of_parameter(graph, graph.nodes()[0])->first, 3);
  EXPECT_EQ(rows_of_parameter(graph, graph.nodes()[1]), nullptr);
}

}  // namespace
}  // namespace cnn::layers
