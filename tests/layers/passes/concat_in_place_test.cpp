#include "layers/passes/concat_in_place.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <string>

#include "layers/activation.h"
#include "layers/concat.h"
#include "layers/operands.h"
#include "layers/passes/layout.h"
#include "layers/pool.h"
#include "runtime/cpu/reference_kernel.h"
#include "tests/layers/branched_step.h"
#include "tests/layers/device_loops.h"
#include "tests/layers/running_graph.h"

namespace cnn::layers {
namespace {

using tests::branched_step;
using tests::device_loops;
using tests::RunningGraph;

std::shared_ptr<Graph> settled(const Graph& graph) {
  return assign_layouts(graph, device_loops(), Layout::nhwc).graph;
}
std::shared_ptr<Graph> placed(const Graph& graph, const KernelTable& table = device_loops()) {
  return concat_in_place(graph, table).graph;
}

TEST(ConcatInPlace, KeepsEveryBitOfEveryGradient) {
  for (const DataType type : {DataType::f32, DataType::f16}) {
    const std::shared_ptr<Graph> graph = branched_step(type, device_loops());
    RunningGraph before({.step = graph, .prologue = nullptr}, device_loops());
    RunningGraph after({.step = placed(*graph), .prologue = nullptr}, device_loops());
    for (int step = 0; step < 2; ++step) {
      before.run();
      after.run();
    }
    ASSERT_GT(before.results().size(), 10U);
    for (std::size_t i = 0; i < before.results().size(); ++i) {
      const TensorView one = before.results()[i], other = after.results()[i];
      EXPECT_EQ(std::memcmp(one.data, other.data, one.desc.bytes()), 0) << i;
    }
  }
}

TEST(ConcatInPlace, LeavesNothingToCopyInATrainingStep) {
  const std::shared_ptr<Graph> graph = branched_step(DataType::f16, device_loops());
  const InPlace before = count_in_place(*graph);
  EXPECT_EQ(before.nodes, 4U);
  EXPECT_EQ(before.whole_nodes, 0U);
  EXPECT_EQ(before.copied_bytes, 2U * (56 + 40) * 2 * 5 * 4 * 2);
  const InPlace after = count_in_place(*placed(*graph));
  EXPECT_EQ(after.nodes, 4U);
  EXPECT_EQ(after.whole_nodes, 4U);
  EXPECT_EQ(after.bytes, before.copied_bytes);
  EXPECT_EQ(after.copied_bytes, 0U);
}

// In a short network the peak lies where gradients are split, so kept activations do not matter.
TEST(ConcatInPlace, NeedsLessMemoryInADeepNetwork) {
  const std::shared_ptr<Graph> graph = branched_step(DataType::f16, device_loops(), /*modules=*/6);
  EXPECT_LT(make_plan(placed(*graph), device_loops()).memory.device_bytes,
            make_plan(graph, device_loops()).memory.device_bytes);
}

// Images of the given channel counts, each made by a ReLU.
struct Parts {
  DataType type;
  Graph graph{{.compute = type}};
  std::vector<Value> parts;

  Parts(std::initializer_list<std::int64_t> channels, DataType element = DataType::f16)
      : type(element) {
    for (const std::int64_t count : channels) {
      parts.push_back(relu(image(count)));
    }
  }
  Value image(std::int64_t channels) {
    return graph.state("x" + std::to_string(graph.tensors().size()),
                       described({2, channels, 3, 2}, type), {}, false);
  }
  void finish(Value y) { graph.output("y", relu(y)); }
  std::shared_ptr<Graph> placed_graph() const { return placed(*settled(graph)); }
  std::string in_place(const KernelTable& table = device_loops()) const {
    return text_of(*placed(*settled(graph), table));
  }
  // Returns a mark for each part of the first concat: + in place, - copied.
  static std::string text_of(const Graph& result) {
    std::string text;
    std::int64_t channel = 0;
    for (const TensorId part : find(result, "concat").inputs) {
      const auto& alias = result.info(part).alias;
      text += alias && alias->channel_offset == channel ? "+" : "-";
      channel += result.info(part).desc.shape[1];
    }
    return text;
  }
  static const Node& find(const Graph& graph, std::string_view op) {
    return *std::ranges::find_if(graph.nodes(),
                                 [&](const Node& node) { return node.op->name() == op; });
  }
};

TEST(ConcatInPlace, GivesAPartThePlaceAndThePitchOfItsChannels) {
  Parts p({8, 16});
  p.finish(concat(p.parts));
  const std::shared_ptr<Graph> graph = p.placed_graph();
  const Node& node = Parts::find(*graph, "concat");
  EXPECT_EQ(graph->root_of(node.inputs[1]), node.outputs[0]);
  EXPECT_EQ(graph->info(node.inputs[1]).alias->channel_offset, 8);
  EXPECT_EQ(graph->info(node.inputs[1]).desc.pitch, 24);
  EXPECT_EQ(graph->info(node.outputs[0]).desc.pitch, 0);
}

TEST(ConcatInPlace, CopiesWhatBeginsAtNoMultipleOf16Bytes) {
  Parts aligned({12, 4, 8});
  aligned.finish(concat(aligned.parts));
  EXPECT_EQ(aligned.in_place(), "+-+");
  Parts uneven({8, 8, 4});  // otherwise the second pixel is not aligned
  uneven.finish(concat(uneven.parts));
  EXPECT_EQ(uneven.in_place(), "---");
}

TEST(ConcatInPlace, CopiesWhatIsNoActivationOrLeaves) {
  Parts p({24, 8});
  p.finish(concat({{p.parts[0], p.image(8), p.parts[1]}}));
  const std::shared_ptr<Graph> graph = settled(p.graph);
  EXPECT_EQ(Parts::text_of(*placed(*graph)), "+-+");
  const Node& node = Parts::find(*graph, "concat");
  graph->output("part", {graph.get(), node.inputs[2]});
  EXPECT_EQ(Parts::text_of(*placed(*graph)), "+--");
  graph->output("whole", {graph.get(), node.outputs[0]});
  EXPECT_EQ(Parts::text_of(*placed(*graph)), "---");
}

TEST(ConcatInPlace, CopiesWhatLiesElsewhereAlready) {
  Parts p({8, 8});
  p.finish(concat({{p.parts[0], p.parts[1], p.parts[0]}}));
  EXPECT_EQ(p.in_place(), "++-");
  Parts twice({8, 8});
  twice.finish(concat({{concat(twice.parts), twice.parts[0]}}));
  EXPECT_EQ(count_in_place(*twice.placed_graph()).whole_nodes, 1U);
  EXPECT_EQ(count_in_place(*twice.placed_graph()).copied_bytes, 2U * (16 + 8) * 3 * 2 * 2);
}

// The whole image would live as long as its smallest part.
TEST(ConcatInPlace, CopiesAllWhereMostMustBeCopied) {
  Parts half({8, 8});
  half.finish(concat({{half.parts[0], half.image(16), half.parts[1]}}));
  EXPECT_EQ(half.in_place(), "+-+");
  Parts less({8, 8});
  less.finish(concat({{less.parts[0], less.image(24), less.parts[1]}}));
  EXPECT_EQ(less.in_place(), "---");
}

// The table accepts no pitch in the op that makes a part, or in the op that reads it.
TEST(ConcatInPlace, CopiesWhereAKernelKnowsNoPitch) {
  KernelTable table = device_loops();
  const auto describe = [](const MaxPool& /*op*/, const Signature& request) {
    KernelSpec spec = tests::as_libraries_take(request);
    spec.in[0].pitch = spec.out[0].pitch = 0;
    return std::optional(spec);
  };
  table.add<MaxPool>(describe, [](const MaxPool& op, const Signature& /*signature*/) {
    return std::make_unique<tests::DeviceLoops>(op);
  });
  const PoolOptions same{.kernel = 3, .stride = 1, .padding = Padding::same};
  Parts made({8, 8});
  made.finish(concat({{made.parts[0], max_pool(made.parts[1], same)}}));
  EXPECT_EQ(made.in_place(table), "+-");
  EXPECT_EQ(made.in_place(), "++");
  Parts read({8, 8});
  read.graph.output("pool", max_pool(read.parts[0], same));
  read.finish(concat(read.parts));
  EXPECT_EQ(read.in_place(table), "-+");
  EXPECT_EQ(read.in_place(), "++");
}

TEST(ConcatInPlace, ChangesNothingInOtherLayouts) {
  Parts p({16, 16}, DataType::f32);
  p.finish(concat(p.parts));
  KernelTable table;
  add_reference(table);
  const std::shared_ptr<Graph> graph = assign_layouts(p.graph, table, Layout::nchw).graph;
  EXPECT_EQ(count_in_place(*placed(*graph, table)).bytes, 0U);
}

// Some parts are copied and the others are views.
TEST(ConcatInPlace, ComputesTheSameWhereOnlySomePartsFit) {
  Parts p({12, 4, 8});
  p.finish(concat({{p.parts[0], p.parts[1], p.parts[2], p.parts[0], p.image(4)}}));
  const std::shared_ptr<Graph> graph = settled(p.graph);
  RunningGraph before({.step = graph, .prologue = nullptr}, device_loops());
  RunningGraph after({.step = placed(*graph), .prologue = nullptr}, device_loops());
  EXPECT_GT(count_in_place(after.planned()).bytes, 0U);
  EXPECT_GT(count_in_place(after.planned()).copied_bytes, 0U);
  before.run();
  after.run();
  const TensorView one = before.results()[0], other = after.results()[0];
  EXPECT_EQ(std::memcmp(one.data, other.data, one.desc.bytes()), 0);
}

}  // namespace
}  // namespace cnn::layers
