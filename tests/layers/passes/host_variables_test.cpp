#include "layers/passes/host_variables.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layers/dense.h"
#include "layers/host_variable.h"
#include "layers/loss.h"
#include "layers/operands.h"
#include "layers/passes/pipeline.h"
#include "layers/passes/rewriter.h"
#include "runtime/program.h"
#include "runtime/variables.h"
#include "tests/layers/cpu_table.h"
#include "tests/layers/running_graph.h"

namespace cnn::layers {
namespace {

using tests::cpu_table;
using tests::plain_table;
using tests::RunningGraph;

constexpr std::int64_t inputs = 1200, units = 1000;  // 4.6 MiB of weights: two slices

bool is_large(const TensorInfo& info) { return info.desc.bytes() >= std::size_t{4} << 20U; }

// Returns the training step of three dense layers, whose first two have large weights; or an
// evaluation that shares these variables, if they are given.
std::shared_ptr<Graph> step_of(Rule rule, const IsOnHost& is_on_host,
                               const KernelTable& table = cpu_table(),
                               std::span<const TensorInfo> shared = {}) {
  const bool trains = shared.empty();
  Graph graph(Traits{.training = trains});
  const Value x = graph.state("images", described({4, inputs}, DataType::f32), {}, false);
  const Value labels = graph.input("labels", described({4}, DataType::i32));
  const Value hidden = dense(dense(x, {.units = inputs}), {.units = units});
  const Value loss = softmax_cross_entropy(dense(hidden, {.units = 10, .relu = false}), labels);
  graph.output("base_loss", loss);
  PipelineOptions options{.fixed = shared, .is_on_host = is_on_host};
  if (trains) {
    options.loss = loss.id;
    options.training.optimizer.update.rule = rule;
    options.training.optimizer.update.weight_decay = 0.01;
  }
  return run_pipeline(graph, table, options).graphs.step;
}

template <class O>
std::size_t count(const Graph& graph) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [](const Node& node) { return as<O>(node) != nullptr; }));
}

TEST(PlaceVariablesOnHost, KeepsEveryBitOfTraining) {
  for (const RuleRow& row : rules()) {
    RunningGraph before({.step = step_of(row.rule, {}), .prologue = nullptr}, cpu_table());
    RunningGraph after({.step = step_of(row.rule, is_large), .prologue = nullptr}, cpu_table());
    ASSERT_GT(Variables(after.planned()).host_bytes(), 0U);
    for (int step = 0; step < 3; ++step) {
      before.run();
      after.run();
      for (std::size_t i = 0; i < before.results().size(); ++i) {
        const TensorView one = before.results()[i], other = after.results()[i];
        EXPECT_EQ(std::memcmp(one.data, other.data, one.desc.bytes()), 0)
            << row.name << " step " << step << " output " << i;
      }
    }
    const Variables variables(after.planned());
    for (const Variable& variable : variables.all()) {
      if (variable.info.saved) {
        const auto one = before.variable(variable.info.name);
        const auto other = after.variable(variable.info.name);
        EXPECT_EQ(std::memcmp(one.view().data, other.view().data, one.desc().bytes()), 0)
            << row.name << " " << variable.info.name;
      }
    }
  }
}

TEST(PlaceVariablesOnHost, LeavesOneGradientWhole) {
  const std::shared_ptr<Graph> whole = step_of(Rule::momentum, {});
  const std::shared_ptr<Graph> hosted = step_of(Rule::momentum, is_large);
  const Variables before(*whole), after(*hosted);
  EXPECT_EQ(before.host_bytes(), 0U);
  EXPECT_EQ(before.bytes(), after.bytes() + after.host_bytes());
  EXPECT_GT(after.host_bytes(), after.bytes() * 50);
  const auto total = [](const std::shared_ptr<Graph>& graph) {
    return Variables(*graph).bytes() + make_plan(graph, cpu_table()).memory.device_bytes;
  };
  const auto largest = static_cast<std::size_t>(inputs * inputs) * sizeof(float);
  EXPECT_GT(total(whole), 5 * largest);
  // The gradient, and slices of the weights and of the slot: the one in use, the next, and those
  // of the other layer.
  EXPECT_LT(total(hosted), largest + (std::size_t{25} << 20U));
}

TEST(PlaceVariablesOnHost, UpdatesInSlicesBehindTheLastReader) {
  const std::shared_ptr<Graph> hosted = step_of(Rule::adam, is_large, plain_table());
  EXPECT_EQ(count<UpdateSlice>(*hosted), 4U);
  EXPECT_EQ(count<StoreVariable>(*hosted), 12U);
  EXPECT_EQ(count<HalfSumOfSlices>(*hosted), 2U);
  // The first layer needs no gradient of its images.
  EXPECT_EQ(count<LoadVariable>(*hosted), 12U + 3U);
  EXPECT_GT(count<Update>(*hosted), 0U);
  bool data_is_made = false;
  std::size_t products = 0;
  for (const Node& node : hosted->nodes()) {
    if (as<DenseBackwardWeights>(node) != nullptr && ++products == 2) {
      EXPECT_TRUE(data_is_made) << "the weights of the second layer are still there";
    }
    data_is_made = products == 1 && (data_is_made || as<DenseBackwardData>(node) != nullptr);
  }
  EXPECT_EQ(products, 3U);
}

TEST(PlaceVariablesOnHost, SharesThemWithAnEvaluation) {
  for (const KernelTable* const table : {&plain_table(), &cpu_table()}) {
    const std::shared_ptr<Graph> training = step_of(Rule::momentum, is_large, *table);
    const std::shared_ptr<Graph> evaluation =
        step_of(Rule::momentum, is_large, *table, training->tensors());
    EXPECT_EQ(count<LoadVariable>(*evaluation), 2U);
    const Variables shared(*training, evaluation.get());
    EXPECT_EQ(shared.host_bytes(), Variables(*training).host_bytes());
  }
}

TEST(PlaceVariablesOnHost, KeepsAGraphWithoutLargeParameters) {
  const std::shared_ptr<Graph> whole = step_of(Rule::sgd, {});
  const auto none = [](const TensorInfo& /*info*/) { return false; };
  const std::shared_ptr<Graph> same = step_of(Rule::sgd, none);
  ASSERT_EQ(same->nodes().size(), whole->nodes().size());
  for (std::size_t n = 0; n < whole->nodes().size(); ++n) {
    EXPECT_EQ(same->nodes()[n].op->name(), whole->nodes()[n].op->name());
  }
}

// An update that waits for all gradients, or writes copies, takes whole parameters.
TEST(PlaceVariablesOnHost, LeavesParametersOfAutomaticLossScaleOnTheDevice) {
  Graph graph;
  OptimizerOptions options;
  options.update.automatic_loss_scale = true;
  loss_seed(graph, options);
  const TensorDesc desc = described({inputs, units}, DataType::f32);
  const Value w = graph.parameter("w", desc, {});
  const Value x = graph.input("x", described({4, inputs}, DataType::f32));
  const Value dy = graph.input("dy", described({4, units}, DataType::f32));
  graph.output("y", emit(Dense({.bias = false}), {x, w}));
  const Value gradient = emit(DenseBackwardWeights({.bias = false}), {x, dy});
  append_update(graph, std::span(&w, 1), std::span(&gradient, 1), options);
  const auto always = [](const TensorInfo& /*info*/) { return true; };
  const std::shared_ptr<Graph> same = place_variables_on_host(graph, cpu_table(), always).graph;
  EXPECT_EQ(Variables(*same).host_bytes(), 0U);
  EXPECT_EQ(same->nodes().size(), graph.nodes().size());
}

}  // namespace
}  // namespace cnn::layers
