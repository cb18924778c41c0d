// Every case as the program would run it (all passes, plan, executor, all kernels together) against
// the plain loops node by node: results, gradients, and every variable afterwards.

#include "layers/passes/pipeline.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "layers/cpu/isa.h"
#include "runtime/cpu/reference_kernel.h"
#include "runtime/error.h"
#include "tests/layers/backends.h"
#include "tests/layers/cases.h"
#include "tests/layers/running_graph.h"
#include "tests/support/interpreter.h"

namespace cnn::tests {
namespace {

// The kernels alone, to which only the loops are added.
std::vector<Backend> backends_with_fallback() {
  std::vector<Backend> result = all_backends();
  result.push_back({.name = "reference", .table = {}});
  for (Backend& backend : result) {
    add_reference(backend.table);
  }
  return result;
}

// Makes outputs of the graph of everything that no node reads: y, the gradients, the losses.
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

// |actual - expected| / |expected| in the Euclidean norm; 1 where integers differ.
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
  // The loops know f32 only, and a build without oneDNN has no conversions to and from 16 bits.
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
    // Written so that NaN fails.
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
    // Roundings of the layers of a block meet in bf16, and flip the sign of a few activations.
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

}  // namespace
}  // namespace cnn::tests
