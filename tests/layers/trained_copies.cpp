#include "tests/layers/trained_copies.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/loss.h"
#include "layers/operands.h"
#include "layers/optimizer.h"
#include "layers/passes/copies.h"
#include "layers/passes/layout.h"
#include "layers/passes/pipeline.h"
#include "tests/layers/conformance.h"
#include "tests/layers/running_graph.h"
#include "tests/support/literals.h"

namespace cnn::tests {
namespace {

void build_network(Graph& graph) {
  const Value x = graph.input("images", {Shape{2, 8, 6, 6}, graph.traits().compute});
  const Value labels = graph.input("labels", layers::described({2}, DataType::i32));
  Value y = layers::conv(x, {.filters = 16, .kernel = 3});
  y = layers::conv(y, {.filters = 8, .kernel = 1});
  y = layers::dense(layers::flatten(y), {.units = 10, .relu = false});
  const Value loss = layers::softmax_cross_entropy(layers::convert(y, DataType::f32), labels);
  layers::TrainingOptions options;
  options.optimizer.update.rule = layers::Rule::momentum;
  options.optimizer.update.weight_decay = 0.01;
  options.optimizer.update.automatic_loss_scale = true;
  graph.output("loss", loss);
  layers::append_training(graph, loss, options);
}

std::size_t count_conversions(const Graph& graph) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [](const Node& node) { return node.op->name() == "convert"; }));
}

// Bits, so that NaN equals itself.
void expect_equal(const RunningGraph& a, const RunningGraph& b, const std::string& when) {
  for (std::size_t i = 0; i < a.results().size(); ++i) {
    EXPECT_EQ(a.results()[i].as<std::uint32_t>()[0], b.results()[i].as<std::uint32_t>()[0]) << when;
  }
  for (const TensorInfo& info : a.planned().tensors()) {
    if (info.role == Role::parameter || info.role == Role::state) {
      EXPECT_TRUE(equal_bytes(a.variable(info.name), b.variable(info.name)))
          << info.name << ' ' << when;
    }
  }
}

}  // namespace

void check_training_with_copies(const KernelTable& table, Layout image, DataType compute,
                                std::size_t copies) {
  Graph graph(Traits{.compute = compute});
  build_network(graph);
  const std::shared_ptr<Graph> laid_out = layers::assign_layouts(graph, table, image).graph;
  const layers::PrologueSplit divided = layers::keep_copies(*laid_out, table);
  ASSERT_EQ(copies > 0, divided.prologue != nullptr);
  if (copies > 0) {
    EXPECT_EQ(divided.prologue->nodes().size(), copies);
  }
  EXPECT_EQ(count_conversions(*divided.step) + copies, count_conversions(*laid_out));
  RunningGraph plain({.step = laid_out, .prologue = nullptr}, table);
  RunningGraph copying(divided, table);
  const HostTensor usual = tensor({}, {128});
  const HostTensor too_large = tensor({}, {std::numeric_limits<float>::infinity()});
  const std::string kernel = "v/cg/conv0/conv2d/kernel";
  for (int step = 0; step < 4; ++step) {
    const HostTensor before = plain.variable(kernel);
    for (RunningGraph* running : {&plain, &copying}) {
      running->write("loss_scale", step == 1 ? too_large.view() : usual.view());
      if (step == 3) {  // as a checkpoint is loaded
        const HostTensor loaded = copy_of(before.view());
        std::ranges::transform(loaded.view().as<float>(), loaded.view().as<float>().begin(),
                               [](float w) { return 3 - w; });
        running->write(kernel, loaded.view());
        running->prepare();
      }
      running->run();
    }
    EXPECT_EQ(equal_bytes(before, plain.variable(kernel)), step == 1) << "only that is skipped";
    expect_equal(plain, copying, "after step " + std::to_string(step));
  }
}

}  // namespace cnn::tests
