// Runs every case as the program does, with all passes, plan, executor and kernels. Compares
// results, gradients and final variables with the reference loops node by node.

#include "layers/passes/pipeline.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/cpu/isa.h"
#include "layers/cpu/kernels.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/loss.h"
#include "layers/operands.h"
#include "layers/passes/autodiff.h"
#include "layers/passes/concat_in_place.h"
#include "layers/pool.h"
#include "runtime/cpu/reference_kernel.h"
#include "runtime/error.h"
#include "runtime/program.h"
#include "tests/layers/backends.h"
#include "tests/layers/cases.h"
#include "tests/layers/conformance.h"
#include "tests/layers/device_loops.h"
#include "tests/layers/running_graph.h"
#include "tests/support/interpreter.h"

namespace cnn::tests {
namespace {

// Returns the backends with only the reference loops as fallback, and a backend of loops alone.
std::vector<Backend> backends_with_fallback() {
  std::vector<Backend> result = all_backends();
  result.push_back({.name = "reference", .table = {}});
  for (Backend& backend : result) {
    add_reference(backend.table);
  }
  return result;
}

// Makes every tensor that no node reads an output: y, the gradients and the losses.
void mark_outputs(Graph& graph) {
  std::vector<bool> read(graph.tensors().size());
  for (const Node& node : graph.nodes()) {
    for (const TensorId input : node.inputs) {
      read[index_of(input)] = true;
    }
  }
  for (const Node& node : graph.nodes()) {
    for (const TensorId output : node.outputs) {
      if (!read[index_of(output)]) {
        graph.output(graph.info(output).name, {&graph, output});
      }
    }
  }
}

// Returns |actual - expected| / |expected| in the Euclidean norm, or 1 if integers differ.
double distance(const TensorView& expected, const TensorView& actual) {
  check(expected.desc.shape == actual.desc.shape && expected.desc.type == actual.desc.type,
        "a result came out as " + to_string(actual.desc));
  if (expected.desc.type != DataType::f32) {
    return std::equal(expected.data, expected.data + expected.desc.bytes(), actual.data) ? 0 : 1;
  }
  double difference = 0;
  double norm = 1e-30;
  for (std::size_t i = 0; i < expected.as<float>().size(); ++i) {
    const double value = expected.as<float>()[i];
    difference += std::pow(actual.as<float>()[i] - value, 2);
    norm += value * value;
  }
  return std::sqrt(difference / norm);
}

void check_backend(const Backend& backend, const Interpreter& expected, double tolerance) {
  SCOPED_TRACE(backend.name);
  const Graph& graph = expected.graph();
  const bool narrow = std::ranges::any_of(
      graph.tensors(), [](const TensorInfo& info) { return size_of(info.desc.type) == 2; });
  // The reference loops compute in f32 only, and a build without oneDNN cannot convert to 16 bits.
  if (narrow && (backend.name == "reference" || !layers::cpu::computes_bf16())) {
    return;
  }
  RunningGraph running(
      layers::run_pipeline(graph, backend.table,
                           {.fusion = layers::Fusion::conv, .layout = backend.image})
          .graphs,
      backend.table);
  running.run();
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    // The comparison is written so that NaN fails.
    const double error = distance(expected.view(graph.outputs()[i].tensor), running.results()[i]);
    EXPECT_TRUE(error <= tolerance) << graph.outputs()[i].name << " is off by " << error;
  }
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorInfo& info = graph.tensors()[i];
    if (info.role == Role::parameter || info.role == Role::state) {
      const HostTensor after = running.variable(info.name);
      const double error =
          distance(expected.view(TensorId{static_cast<std::uint32_t>(i)}), after.view());
      EXPECT_TRUE(error <= tolerance) << info.name << " is off by " << error;
    }
  }
}

class Pipeline : public testing::TestWithParam<Case> {};

TEST_P(Pipeline, ComputesWhatTheOpsDefine) {
  const std::vector<Backend> backends = backends_with_fallback();
  for (const DataType compute : {DataType::f32, DataType::bf16, DataType::f16}) {
    const BuiltCase built = build(GetParam(), compute);
    mark_outputs(*built.graph);
    Interpreter expected(*built.graph);
    expected.run();
    // In bf16 the rounding errors of a block's layers accumulate and flip the sign of a few
    // activations.
    const double tolerance = compute == DataType::f32 ? 1e-4 : 0.05;
    for (const Backend& backend : backends) {
      if (backend.compute == compute) {
        check_backend(backend, expected, tolerance);
      }
    }
  }
}

std::vector<Case> small_cases() {
  std::vector<Case> result = all_cases();
  std::erase_if(result, [](const Case& row) { return row.weight != Weight::small; });
  return result;
}

std::string test_name(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Cpu, Pipeline, testing::ValuesIn(small_cases()), test_name);

// Two blocks with shortcuts, the second one projected, followed by branches.
Value network(Value x) {
  constexpr layers::BatchNormOptions norm{.decay = 0.5, .epsilon = 1e-3, .scale = true};
  const auto end = [&](Value y, std::int64_t filters) {
    return layers::conv_bn(y, {.filters = filters, .relu = false}, norm);
  };
  const Value first = layers::conv_bn(x, {.filters = 8, .kernel = 3}, norm);
  const Value block =
      layers::relu(layers::add(end(layers::conv_bn(first, {.filters = 8}, norm), 8), first));
  const Value wide = layers::relu(layers::add(end(block, 16), end(block, 16)));
  const Value left = layers::conv_bn(wide, {.filters = 8}, norm);
  const Value right = layers::conv_bn(wide, {.filters = 8, .kernel = 3}, norm);
  return layers::spatial_mean(layers::concat({{left, right}}));
}

// Returns the network's forward graph with the output "loss".
std::unique_ptr<Graph> forward_graph(bool training) {
  auto graph = std::make_unique<Graph>(Traits{.training = training});
  const Value x = graph->input("x", layers::described({3, 3, 6, 6}, DataType::f32));
  const Value labels = graph->input("labels", layers::described({3}, DataType::i32));
  const Value logits = layers::dense(network(x), {.units = 10, .relu = false});
  graph->output("loss", layers::softmax_cross_entropy(logits, labels));
  return graph;
}

layers::PipelineResult trained(const Graph& forward, const KernelTable& table,
                               layers::Fusion fusion) {
  layers::PipelineOptions options{.fusion = fusion, .layout = Layout::nhwc};
  options.loss = forward.outputs().front().tensor;
  options.training.optimizer.update.rule = layers::Rule::momentum;
  options.training.optimizer.update.weight_decay = 0.01;
  return layers::run_pipeline(forward, table, options);
}

std::size_t count(const Graph& graph, std::string_view op) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [&](const Node& node) { return node.op->name() == op; }));
}

bool has_masks(const Graph& graph) {
  return std::ranges::any_of(graph.tensors(),
                             [](const TensorInfo& info) { return info.desc.type == DataType::u8; });
}

// Returns device_loops() with parameters in any layout.
KernelTable training_loops() {
  KernelTable table = device_loops();
  table.add<layers::Update>(
      [](const layers::Update& /*op*/, const Signature& request) {
        return std::optional(KernelSpec{.workspace = 0, .in = request.in, .out = request.out});
      },
      [](const layers::Update& op, const Signature& /*signature*/) {
        return std::make_unique<DeviceLoops>(op);
      });
  return table;
}

TEST(PipelineOfTraining, GivesTheSameValuesAtEveryLevelOfFusion) {
  const std::unique_ptr<Graph> forward = forward_graph(true);
  const KernelTable table = training_loops();
  for (const layers::Fusion fusion : {layers::Fusion::bn, layers::Fusion::conv}) {
    SCOPED_TRACE(std::string(name_of(fusion)));
    RunningGraph expected(trained(*forward, table, layers::Fusion::none).graphs, table);
    const layers::PipelineResult made = trained(*forward, table, fusion);
    EXPECT_EQ(made.fusion, fusion);
    EXPECT_TRUE(has_masks(*made.graphs.step));
    EXPECT_EQ(layers::count_in_place(*made.graphs.step).whole_nodes, 2U);
    EXPECT_EQ(count(*made.graphs.step, "fused_conv") > 0, fusion == layers::Fusion::conv);
    RunningGraph running(made.graphs, table);
    for (int step = 0; step < 3; ++step) {
      expected.run();
      running.run();
    }
    for (std::size_t i = 0; i < expected.results().size(); ++i) {
      EXPECT_LE(distance(expected.results()[i], running.results()[i]), 1e-4);
    }
    for (const TensorInfo& info : expected.planned().tensors()) {
      if (info.role == Role::parameter || info.role == Role::state) {
        EXPECT_LE(distance(expected.variable(info.name).view(), running.variable(info.name).view()),
                  1e-3)
            << info.name;
      }
    }
  }
}

// The table has fast kernels that support masks but no other fusion, above the reference loops,
// which support every op.
TEST(PipelineOfTraining, PutsNoLoopsInThePlaceOfAKernel) {
  KernelTable table;
  add_reference(table);
  layers::cpu::add_kernels(table);
  const layers::PipelineResult made = trained(*forward_graph(true), table, layers::Fusion::conv);
  EXPECT_EQ(made.fusion, layers::Fusion::bn);
  EXPECT_EQ(count(*made.graphs.step, "fused_conv"), 0U);
  EXPECT_TRUE(has_masks(*made.graphs.step));
  const std::vector<KernelSpec> specs = describe(*made.graphs.step, table);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::string_view op = made.graphs.step->nodes()[i].op->name();
    EXPECT_TRUE(specs[i].by != Provider::loops || !op.starts_with("batch_norm")) << op;
  }
  EXPECT_EQ(layers::count_in_place(*made.graphs.step).bytes, 0U);
}

TEST(PipelineOfTraining, LetsItsUserChangeGradientsBeforeTheUpdate) {
  const std::unique_ptr<Graph> forward = forward_graph(true);
  layers::PipelineOptions options{.loss = forward->outputs().front().tensor};
  std::size_t seen = 0;
  options.training.on_gradients = [&](std::span<const Value> parameters,
                                      std::span<Value> gradients) {
    seen = parameters.size();
    for (Value& gradient : gradients) {
      gradient = layers::fill(*gradient.graph, gradient.desc().shape, 0);
    }
  };
  KernelTable table;
  add_reference(table);
  RunningGraph running(layers::run_pipeline(*forward, table, options).graphs, table);
  const std::string name = "v/cg/conv0/conv2d/kernel";
  const HostTensor before = running.variable(name);
  running.run();
  EXPECT_EQ(seen, layers::parameters_of(*forward).size());
  EXPECT_TRUE(equal_bytes(before, running.variable(name)));
}

// Returns a network without norms, with branches of unequal reach and its loss as output.
std::unique_ptr<Graph> forward_graph_of_windows() {
  auto graph = std::make_unique<Graph>(Traits{.training = true});
  const Value x = graph->input("x", layers::described({2, 3, 40, 9}, DataType::f32));
  const Value labels = graph->input("labels", layers::described({2}, DataType::i32));
  const layers::PoolOptions pool{.kernel = 3, .stride = 2, .padding = layers::Padding::same};
  Value y = layers::max_pool(layers::conv(x, {.filters = 16, .kernel = 5, .stride = 2}), pool);
  y = layers::concat(
      {{layers::conv(y, {.filters = 16}),
        layers::conv(layers::conv(y, {.filters = 8}), {.filters = 16, .kernel = 3}),
        layers::conv(layers::conv(y, {.filters = 4}), {.filters = 8, .kernel = 5})}});
  const Value logits = layers::dense(layers::spatial_mean(y), {.units = 10, .relu = false});
  graph->output("loss", layers::softmax_cross_entropy(logits, labels));
  return graph;
}

void expect_slices_of_rows_to_train_as_the_whole(const Backend& backend) {
  SCOPED_TRACE(backend.name);
  const std::unique_ptr<Graph> forward = forward_graph_of_windows();
  layers::PipelineOptions options{.layout = backend.image,
                                  .loss = forward->outputs().front().tensor};
  RunningGraph whole(layers::run_pipeline(*forward, backend.table, options).graphs, backend.table);
  options.slices = 2;
  options.row_slices = 3;
  const layers::PipelineResult made = layers::run_pipeline(*forward, backend.table, options);
  EXPECT_EQ(made.slicing.row_slices_made(), 3);
  EXPECT_EQ(made.slicing.rows, 10);
  EXPECT_EQ(count(*made.graphs.step, "concat_rows"), 2U);  // one for each slice of the batch
  RunningGraph sliced(made.graphs, backend.table);
  for (int step = 0; step < 3; ++step) {
    whole.run();
    sliced.run();
  }
  for (const TensorInfo& info : whole.planned().tensors()) {
    if (info.role == Role::parameter || info.role == Role::state) {
      const double error =
          distance(whole.variable(info.name).view(), sliced.variable(info.name).view());
      EXPECT_TRUE(error <= 1e-4) << info.name << " is off by " << error;
    }
  }
}

TEST(PipelineOfTraining, GivesTheSameValuesInSlicesOfRows) {
  for (const Backend& backend : backends_with_fallback()) {
    if (backend.compute == DataType::f32) {
      expect_slices_of_rows_to_train_as_the_whole(backend);
    }
  }
}

TEST(PipelineOfTraining, TakesNoMoreSlicesOfRowsThanThereAre) {
  const std::unique_ptr<Graph> forward = forward_graph_of_windows();
  const layers::PipelineOptions options{.loss = forward->outputs().front().tensor,
                                        .row_slices = 64};
  KernelTable table;
  add_reference(table);
  EXPECT_EQ(layers::run_pipeline(*forward, table, options).slicing.row_slices_made(), 10);
}

TEST(PipelineOfTraining, ComputesWholeImagesWhereNormsNeedThem) {
  const std::unique_ptr<Graph> forward = forward_graph(true);
  const layers::PipelineOptions options{.loss = forward->outputs().front().tensor, .row_slices = 2};
  KernelTable table;
  add_reference(table);
  const layers::PipelineResult made = layers::run_pipeline(*forward, table, options);
  EXPECT_FALSE(made.slicing.is_row_sliced());
  EXPECT_EQ(made.slicing.row_slices, 2);
  EXPECT_EQ(count(*made.graphs.step, "slice_rows"), 0U);
}

TEST(PipelineOfAnEvaluation, FreezesConstantsUnlessItSharesItsVariables) {
  const std::unique_ptr<Graph> forward = forward_graph(false);
  const KernelTable table = device_loops();
  layers::PipelineOptions options{.layout = Layout::nhwc};
  const layers::PipelineResult alone = layers::run_pipeline(*forward, table, options);
  ASSERT_NE(alone.graphs.prologue, nullptr);
  EXPECT_GT(count(*alone.graphs.prologue, "fold_batch_norm"), 0U);
  options.fixed = alone.graphs.step->tensors();
  const layers::PipelineResult sharing = layers::run_pipeline(*forward, table, options);
  EXPECT_EQ(sharing.graphs.prologue, nullptr);
  EXPECT_GT(count(*sharing.graphs.step, "fold_batch_norm"), 0U);
}

}  // namespace
}  // namespace cnn::tests
