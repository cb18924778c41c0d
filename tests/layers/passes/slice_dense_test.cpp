#include "layers/passes/slice_dense.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "layers/batch_slice.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/host_variable.h"
#include "layers/loss.h"
#include "layers/operands.h"
#include "layers/passes/layout.h"
#include "layers/passes/pipeline.h"
#include "layers/passes/rewriter.h"
#include "runtime/program.h"
#include "runtime/variables.h"
#include "tests/layers/cpu_table.h"
#include "tests/layers/running_graph.h"

namespace cnn::layers {
namespace {

using tests::cpu_table;
using tests::RunningGraph;

// The weights take 6.3 and 5 MiB.
constexpr std::int64_t inputs = 1280, units = 1024, slices = 3;

bool is_large(const TensorInfo& info) { return info.desc.bytes() >= std::size_t{4} << 20U; }

// Appends three dense layers, whose first two have large weights, and returns their loss.
Value append_network(Graph& graph, bool trains) {
  const Value x = graph.state("images", described({4, inputs}, DataType::f32), {}, false);
  const Value labels = graph.input("labels", described({4}, DataType::i32));
  const Value hidden = dense(dense(x, {.units = inputs}), {.units = units});
  const Value loss = softmax_cross_entropy(dense(hidden, {.units = 10, .relu = false}), labels);
  graph.output("base_loss", loss);
  if (trains) {
    TrainingOptions training;
    training.optimizer.update.rule = Rule::momentum;
    training.optimizer.update.weight_decay = 0.01;
    append_training(graph, loss, training);
  }
  return loss;
}

template <class O>
std::size_t count(const Graph& graph) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [](const Node& node) { return as<O>(node) != nullptr; }));
}

std::shared_ptr<Graph> laid_out(const Graph& graph) {
  return assign_layouts(graph, cpu_table(), Layout::nhwc).graph;
}

void expect_near(const TensorView& one, const TensorView& other, float tolerance,
                 const std::string& name) {
  ASSERT_EQ(one.desc.shape, other.desc.shape) << name;
  const auto a = one.as<float>(), b = other.as<float>();
  float furthest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    furthest = std::max(furthest, std::abs(a[i] - b[i]));
  }
  EXPECT_LE(furthest, tolerance) << name;
}

TEST(SliceDense, KeepsWhatIsTrainedToRounding) {
  Graph graph;
  append_network(graph, true);
  const SlicedDense sliced = slice_dense(graph, is_large, slices);
  EXPECT_EQ(sliced.weights, 2U);
  RunningGraph before({.step = laid_out(graph), .prologue = nullptr}, cpu_table());
  RunningGraph after({.step = laid_out(*sliced.rewritten.graph), .prologue = nullptr}, cpu_table());
  for (int step = 0; step < 2; ++step) {
    before.run();
    after.run();
  }
  constexpr float rounding = 2e-5F;
  ASSERT_EQ(before.results().size(), after.results().size());
  for (std::size_t i = 0; i < before.results().size(); ++i) {
    const float size = std::abs(before.results()[i].as<float>()[0]);
    expect_near(before.results()[i], after.results()[i], rounding * size, std::to_string(i));
  }
  const Variables variables(before.planned());
  for (const Variable& variable : variables.all()) {
    if (variable.info.saved) {
      const std::string& name = variable.info.name;
      expect_near(before.variable(name).view(), after.variable(name).view(), rounding, name);
    }
  }
}

TEST(SliceDense, ComputesEachSliceByItself) {
  Graph graph;
  append_network(graph, true);
  const std::shared_ptr<Graph> sliced = slice_dense(graph, is_large, slices).rewritten.graph;
  EXPECT_EQ(count<Dense>(*sliced), 3U + 3U + 1U);
  EXPECT_EQ(count<DenseBackwardWeights>(*sliced), 3U + 3U + 1U);
  EXPECT_EQ(count<DenseBackwardData>(*sliced), 3U + 1U) << "images need no gradient";
  EXPECT_EQ(count<Add>(*sliced), 2U + 2U);
  EXPECT_EQ(count<SliceBatch>(*sliced), 3U + 3U + 3U);
  for (const Node& node : sliced->nodes()) {
    if (as<SliceBatch>(node) != nullptr) {
      const std::int64_t elements = sliced->info(node.outputs[0]).desc.shape.elements();
      const TensorId w = node.inputs[0];
      const bool is_last = as<SliceBatch>(node)->first + as<SliceBatch>(node)->count ==
                           sliced->info(w).desc.shape[0];
      EXPECT_TRUE(is_last || elements % elements_per_part == 0) << elements;
    }
  }
}

TEST(SliceDense, AddsTheBiasOnceAndCutsOffOnlyTheWholeSum) {
  Graph graph;
  const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return graph.input(name, described({rows, columns}, DataType::f32));
  };
  const Value x = matrix("x", 2, 4);
  const Value bias = graph.input("bias", described({8192}, DataType::f32));
  const Value w = graph.parameter("w", described({4, 8192}, DataType::f32), {});
  graph.output("y", emit(Dense({.bias = true, .relu = true}), {x, w, bias}));
  const auto always = [](const TensorInfo& /*info*/) { return true; };
  const SlicedDense sliced = slice_dense(graph, always, 2);
  EXPECT_EQ(sliced.weights, 1U);
  RunningGraph before(graph, cpu_table(), Layout::nhwc);
  RunningGraph after(*sliced.rewritten.graph, cpu_table(), Layout::nhwc);
  before.run();
  after.run();
  expect_near(before.results()[0], after.results()[0], 1e-5F, "y");
}

TEST(SliceDense, KeepsLayersWhoseWeightsOrGradientsOthersRead) {
  const auto always = [](const TensorInfo& /*info*/) { return true; };
  Graph graph;
  const Value x = graph.input("x", described({2, 4}, DataType::f32));
  const Value w = graph.parameter("w", described({4, 8192}, DataType::f32), {});
  graph.output("y", emit(Dense({.bias = false}), {x, w}));
  EXPECT_EQ(slice_dense(graph, always, 2).weights, 1U);
  EXPECT_EQ(slice_dense(graph, always, 1).weights, 0U);
  graph.output("twice", scale(w, 2));
  const SlicedDense same = slice_dense(graph, always, 2);
  EXPECT_EQ(same.weights, 0U);
  EXPECT_EQ(same.rewritten.graph->nodes().size(), graph.nodes().size());

  Graph clipped;
  append_network(clipped, false);
  TrainingOptions training;
  training.on_gradients = [](std::span<const Value> /*parameters*/, std::span<Value> gradients) {
    for (Value& gradient : gradients) {
      gradient = scale(gradient, 2);
    }
  };
  append_training(clipped, {&clipped, clipped.outputs()[0].tensor}, training);
  EXPECT_EQ(slice_dense(clipped, is_large, 2).weights, 0U);
}

// Slices of weights on the host are loaded and updated one by one, to the bits of slices of weights
// on the device.
TEST(SliceDense, OnTheHostKeepsEveryBit) {
  Graph graph;
  append_network(graph, true);
  const std::shared_ptr<Graph> sliced = slice_dense(graph, is_large, slices).rewritten.graph;
  const std::shared_ptr<Graph> on_device = laid_out(*sliced);
  const std::shared_ptr<Graph> on_host =
      place_variables_on_host(*on_device, cpu_table(), is_large).graph;
  EXPECT_EQ(count<SliceBatch>(*on_host), 0U);
  EXPECT_EQ(count<ConcatBatch>(*on_host), 0U);
  RunningGraph before({.step = on_device, .prologue = nullptr}, cpu_table());
  RunningGraph after({.step = on_host, .prologue = nullptr}, cpu_table());
  for (int step = 0; step < 3; ++step) {
    before.run();
    after.run();
    for (std::size_t i = 0; i < before.results().size(); ++i) {
      const TensorView one = before.results()[i], other = after.results()[i];
      EXPECT_EQ(std::memcmp(one.data, other.data, one.desc.bytes()), 0) << step << " " << i;
    }
  }
  const Variables variables(after.planned());
  EXPECT_GT(variables.host_bytes(), std::size_t{16} << 20U);
  for (const Variable& variable : variables.all()) {
    if (variable.info.saved) {
      const auto one = before.variable(variable.info.name);
      const auto other = after.variable(variable.info.name);
      EXPECT_EQ(std::memcmp(one.view().data, other.view().data, one.desc().bytes()), 0)
          << variable.info.name;
    }
  }
}

std::size_t arena_of(std::int64_t dense_slices) {
  Graph graph;
  const Value loss = append_network(graph, false);
  PipelineOptions options{.loss = loss.id, .is_on_host = is_large, .dense_slices = dense_slices};
  options.training.optimizer.update.rule = Rule::momentum;
  const PipelineResult made = run_pipeline(graph, cpu_table(), options);
  EXPECT_EQ(made.slicing.dense_slices, dense_slices);
  EXPECT_EQ(made.slicing.dense_sliceable, 2U);
  EXPECT_EQ(made.slicing.is_dense_sliced(), dense_slices > 1);
  return make_plan(made.graphs.step, cpu_table()).memory.device_bytes;
}

TEST(SliceDense, LeavesNoGradientWholeOnTheDevice) {
  constexpr auto largest = static_cast<std::size_t>(inputs * inputs) * sizeof(float);
  EXPECT_LT(arena_of(slices) + largest / 3, arena_of(1));
}

}  // namespace
}  // namespace cnn::layers
