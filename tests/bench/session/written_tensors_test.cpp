#include "bench/session/written_tensors.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>

#include "layers/elementwise.h"
#include "runtime/error.h"
#include "tests/support/error_of.h"
#include "tests/support/test_ops.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;
using tests::Combine;
using tests::Descend;
using tests::floats;
using tests::Scale;

std::uint64_t key_of(const Graph& graph, const std::string& name) {
  const WrittenTensors tensors(graph);
  return tensors.all()[tensors.find(name)].key;
}

TEST(WrittenTensors, AreOutputsAndWhatNodesChangeInPlace) {
  Graph graph;
  const Value x = graph.input("x", floats(2));
  const Value w = graph.parameter("w", floats(2), {});
  const Value y = emit(Combine(), {x, w});
  emit(Descend(), {w, y});
  const WrittenTensors tensors(graph);
  ASSERT_EQ(tensors.all().size(), 3U);
  const WrittenTensor& made = tensors.all()[0];
  EXPECT_EQ(made.name, made.node_name + ":0");
  EXPECT_EQ(made.layer, "w");
  EXPECT_FALSE(made.in_place);
  const WrittenTensor& changed = tensors.all()[tensors.find("w")];
  EXPECT_TRUE(changed.in_place);
  EXPECT_EQ(changed.operand, 0U);
  EXPECT_EQ(changed.output, 1U) << "the variable follows the node's output";
  EXPECT_EQ(tensors.begin(NodeId{1}), 1U);
  EXPECT_EQ(tensors.end(NodeId{1}), 3U);
  EXPECT_EQ(tensors.find(made.node_name), 0U);
  EXPECT_THAT(tests::error_of([&] { std::ignore = tensors.find("conv#99"); }),
              HasSubstr("the step writes no tensor conv#99"));
}

// Returns the key of z in y = 2 x, z = 2 y, optionally after other nodes.
std::uint64_t key_of_second(bool after_other_work, bool converted) {
  Graph graph;
  const Value x = graph.input("x", floats(4));
  const Value other = graph.input("other", floats(4));
  if (after_other_work) {
    emit(Scale(3), {other});
  }
  Value y = emit(Scale(2), {x});
  if (converted) {
    y = emit(layers::Convert(DataType::f32), {y});
  }
  emit(Scale(2), {y});
  return WrittenTensors(graph).all().back().key;
}

TEST(WrittenTensors, HaveKeysThatNeitherOrderNorConversionsOfLayoutsChange) {
  EXPECT_EQ(key_of_second(false, false), key_of_second(true, false));
  EXPECT_EQ(key_of_second(false, false), key_of_second(false, true));
}

TEST(WrittenTensors, HaveKeysThatDifferWhereValuesMayDiffer) {
  Graph graph;
  const Value x = graph.input("x", floats(4));
  const Value y = graph.input("y", floats(4));
  emit(Combine(), {x, y});
  emit(Combine(), {y, x});
  emit(Combine(), {x, y});  // its attributes may differ from the first node's
  emit(layers::Convert(DataType::bf16), {x});
  const WrittenTensors tensors(graph);
  std::vector<std::uint64_t> keys;
  for (const WrittenTensor& tensor : tensors.all()) {
    keys.push_back(tensor.key);
  }
  std::ranges::sort(keys);
  EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
}

TEST(WrittenTensors, HaveAKeyByNameAndWriterForAVariable) {
  const auto key = [](const char* name) {
    Graph graph;
    const Value w = graph.parameter(name, floats(2), {});
    emit(Descend(), {w, graph.input("x", floats(2))});
    return key_of(graph, name);
  };
  EXPECT_EQ(key("w"), key("w"));
  EXPECT_NE(key("w"), key("v"));
}

}  // namespace
}  // namespace cnn::bench
