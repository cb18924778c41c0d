// Tests a step with its large parameters in host memory from the pass to the kernels. Our CUDA
// kernels run on the emulated grid; reference loops stand in for the libraries.

#include "layers/passes/host_variables.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "layers/dense.h"
#include "layers/loss.h"
#include "layers/operands.h"
#include "layers/passes/pipeline.h"
#include "runtime/variables.h"
#include "tests/layers/cuda_grid/device_table.h"
#include "tests/layers/running_graph.h"

namespace cnn::tests {
namespace {

using namespace layers;

// The training step of two dense layers; the weights of the first one take 4.6 MiB, two slices.
std::shared_ptr<Graph> step_of(Rule rule, const KernelTable& table, const IsOnHost& is_on_host,
                               std::int64_t units = 1001, std::int64_t dense_slices = 1) {
  Graph graph;
  const Value x = graph.state("images", described({1, 1201}, DataType::f32), {}, false);
  const Value labels = graph.input("labels", described({1}, DataType::i32));
  const Value logits = dense(dense(x, {.units = units}), {.units = 10, .relu = false});
  const Value loss = softmax_cross_entropy(logits, labels);
  graph.output("base_loss", loss);
  PipelineOptions options{.layout = Layout::nhwc,
                          .loss = loss.id,
                          .is_on_host = is_on_host,
                          .dense_slices = dense_slices};
  options.training.optimizer.update.rule = rule;
  options.training.optimizer.update.weight_decay = 0.01;
  return run_pipeline(graph, table, options).graphs.step;
}

bool is_large(const TensorInfo& info) { return info.desc.bytes() > std::size_t{1} << 20U; }

TEST(GridHostVariables, TrainToTheBitsOfTheUpdateOfTheWhole) {
  const KernelTable table = device_table();
  for (const Rule rule : {Rule::momentum, Rule::adam}) {
    RunningGraph before({.step = step_of(rule, table, {}), .prologue = nullptr}, table);
    RunningGraph after({.step = step_of(rule, table, is_large), .prologue = nullptr}, table);
    const Variables variables(after.planned());
    ASSERT_GT(variables.host_bytes(), std::size_t{9} << 20U);
    before.run();
    after.run();
    ASSERT_EQ(before.results().size(), 2U);
    for (std::size_t i = 0; i < before.results().size(); ++i) {
      const TensorView one = before.results()[i], other = after.results()[i];
      EXPECT_EQ(std::memcmp(one.data, other.data, one.desc.bytes()), 0) << i;
    }
    for (const Variable& variable : variables.all()) {
      if (variable.info.saved) {
        const HostTensor one = before.variable(variable.info.name);
        const HostTensor other = after.variable(variable.info.name);
        EXPECT_EQ(std::memcmp(one.view().data, other.view().data, one.desc().bytes()), 0)
            << variable.info.name;
      }
    }
  }
}

// The layer and its update in five slices, whose sums come in another order.
TEST(GridHostVariables, TrainInSlicesOfDenseLayersToRounding) {
  constexpr std::int64_t units = 1024, slices = 5;
  const KernelTable table = device_table();
  RunningGraph before({.step = step_of(Rule::momentum, table, {}, units), .prologue = nullptr},
                      table);
  RunningGraph after(
      {.step = step_of(Rule::momentum, table, is_large, units, slices), .prologue = nullptr},
      table);
  const auto products = std::ranges::count_if(after.planned().nodes(), [](const Node& node) {
    return node.op->name() == "dense_backward_weights";
  });
  EXPECT_EQ(products, slices + 1);
  before.run();
  after.run();
  const Variables variables(after.planned());
  for (const Variable& variable : variables.all()) {
    const std::string& name = variable.info.name;
    if (!variable.info.saved || variable.info.desc.type != DataType::f32) {
      continue;
    }
    const HostTensor one = before.variable(name), other = after.variable(name);
    const auto a = one.view().as<float>(), b = other.view().as<float>();
    float furthest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      furthest = std::max(furthest, std::abs(a[i] - b[i]));
    }
    EXPECT_LE(furthest, 1e-5F) << name;
  }
}

}  // namespace
}  // namespace cnn::tests
