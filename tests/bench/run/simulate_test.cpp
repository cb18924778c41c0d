#include "bench/run/simulate.h"

#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "bench/machine/roofline.h"
#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "runtime/cpu/reference_kernel.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using layers::BatchNorm;
using layers::Dense;

// Predicts a step whose nodes all run at the ceilings.
Prediction predict_at(const StepPlan& plan, const Ceilings& ceilings) {
  Costs costs;
  for (const NodeCost& cost : node_costs(*plan.graph, ceilings, plan.specs)) {
    costs.seconds.push_back(cost.seconds);
  }
  return predict(plan, ceilings, costs);
}

KernelTable reference() {
  KernelTable table;
  add_reference(table);
  return table;
}

Value state(Graph& graph, const char* name, const Shape& shape) {
  return graph.state(name, {shape}, {}, false);
}

// x [4,8] times w [8,16] takes 2*4*8*16 = 1024 operations on 128 + 512 + 256 = 896 bytes. The ReLU
// reads 256 bytes and writes 256.
std::shared_ptr<Graph> dense_and_relu() {
  auto graph = std::make_shared<Graph>();
  const Value x = state(*graph, "x", {4, 8});
  const Value w = state(*graph, "w", {8, 16});
  const Value y = emit(Dense({.bias = false, .relu = false}), {x, w});
  graph->output("y", emit(layers::Relu(), {y}));
  return graph;
}

TEST(Prediction, HasALimitByTheOperationsThatKernelsNeed) {
  const std::shared_ptr<const Graph> graph = dense_and_relu();
  std::vector<KernelSpec> specs(2);
  specs[0].flops = 512;
  const StepPlan plan{.graph = graph, .specs = specs, .schedule = {}, .memory = {}};
  // The product takes 512 operations at 64 per second, the ReLU 512 bytes at 512 per second.
  EXPECT_EQ(roofline_seconds(plan, {.flops_per_second = 64, .bytes_per_second = 512}), 8 + 1);
  EXPECT_EQ(share_of_operations(plan), 0.5);
  EXPECT_EQ(share_of_operations({.graph = graph, .specs = std::vector<KernelSpec>(2)}), 1);
}

TEST(Prediction, RunsTheNodesOneAfterAnotherAtTheCeilings) {
  const StepPlan plan = make_plan(dense_and_relu(), reference());
  const Prediction prediction =
      predict_at(plan, {.flops_per_second = 1024, .bytes_per_second = 256});
  EXPECT_EQ(prediction.step_seconds, 3.5 + 2);  // 896 / 256 and 512 / 256
  EXPECT_EQ(prediction.roofline_seconds, 5.5);
  EXPECT_EQ(prediction.arithmetic_seconds, 1);
  EXPECT_EQ(prediction.flops, 1024);
  EXPECT_EQ(prediction.bytes, 1408);
  EXPECT_EQ(prediction.timeline.size(), plan.schedule.steps.size());
}

TEST(Prediction, TakesLongerThanTheLimitWhereOperandsAreReadTwice) {
  auto graph = std::make_shared<Graph>();
  const Value x = state(*graph, "x", {2, 3, 4, 4});
  const Value beta = state(*graph, "beta", {3});
  const std::array<Value, 2> operands{x, beta};
  graph->output("y", emit_all(BatchNorm({}), std::span<const Value>(operands)).front());
  const Prediction prediction =
      predict_at(make_plan(graph, reference()), {.flops_per_second = 1, .bytes_per_second = 12});
  EXPECT_EQ(prediction.roofline_seconds, 67);  // 804 / 12
  EXPECT_EQ(prediction.step_seconds, 99);      // (804 + 384) / 12
}

TEST(Prediction, GoesByTheCostsThatItIsGiven) {
  const StepPlan plan = make_plan(dense_and_relu(), reference());
  const Prediction prediction =
      predict(plan, {.flops_per_second = 1024, .bytes_per_second = 256}, {.seconds = {5, 3}});
  EXPECT_EQ(prediction.step_seconds, 8);
  EXPECT_EQ(prediction.roofline_seconds, 5.5);
  EXPECT_EQ(prediction.by_op.front().cost.seconds, 5);
}

TEST(Prediction, TakesLongerThanTheLimitWhereAKernelRunsInPasses) {
  StepPlan plan = make_plan(dense_and_relu(), reference());
  plan.specs[1].extra_traffic = 1024;
  const Prediction prediction =
      predict_at(plan, {.flops_per_second = 1024, .bytes_per_second = 256});
  EXPECT_EQ(prediction.roofline_seconds, 5.5);
  EXPECT_EQ(prediction.step_seconds, 9.5);  // 1024 / 256 s more
  EXPECT_EQ(prediction.bytes, 1408 + 1024);
}

TEST(Convolutions, AreCountedByWhoComputesThem) {
  auto graph = std::make_shared<Graph>();
  const Value x = state(*graph, "x", {1, 4, 8, 8});
  const Value w = state(*graph, "w", {4, 4, 1, 1});
  graph->output("y", emit(layers::Conv2d({}), {x, w}));
  StepPlan plan = make_plan(graph, reference());
  EXPECT_EQ(count_convolutions(plan).own, 1);
  EXPECT_EQ(count_convolutions(plan).by_library, 0);
  for (KernelSpec& spec : plan.specs) {
    spec.by = Provider::cudnn;
  }
  EXPECT_EQ(count_convolutions(plan).own, 0);
  EXPECT_EQ(count_convolutions(plan).by_library, 1);
}

}  // namespace
}  // namespace cnn::bench
