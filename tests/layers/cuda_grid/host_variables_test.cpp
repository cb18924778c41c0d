// Tests a step with its large parameters in host memory from the pass to the kernels. Our CUDA
// kernels run on the emulated grid; reference loops stand in for the libraries.

#include "layers/passes/host_variables.h"

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
std::shared_ptr<Graph> step_of(Rule rule, const KernelTable& table, const IsOnHost& is_on_host) {
  Graph graph;
  const Value x = graph.state("images", described({1, 1201}, DataType::f32), {}, false);
  const Value labels = graph.input("labels", described({1}, DataType::i32));
  const Value logits = dense(dense(x, {.units = 1001}), {.units = 10, .relu = false});
  const Value loss = softmax_cross_entropy(logits, labels);
  graph.output("base_loss", loss);
  PipelineOptions options{.layout = Layout::nhwc, .loss = loss.id, .is_on_host = is_on_host};
  options.training.optimizer.update.rule = rule;
  options.training.optimizer.update.weight_decay = 0.01;
  return run_pipeline(graph, table, options).graphs.step;
}

TEST(GridHostVariables, TrainToTheBitsOfTheUpdateOfTheWhole) {
  const KernelTable table = device_table();
  const auto is_large = [](const TensorInfo& info) {
    return info.desc.bytes() > std::size_t{1} << 20U;
  };
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

}  // namespace
}  // namespace cnn::tests
