// Fused convolutions as an engine of cuDNN computes them: which operand of a node becomes which
// tensor of the graph, and what we do around the engine. The engine is the graph's own loops.

#include "layers/fused_conv.h"

#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "layers/cuda/fused_steps.h"
#include "tests/layers/cases.h"
#include "tests/layers/conformance.h"
#include "tests/layers/cuda_grid/operation_loops.h"
#include "tests/support/grid/on_grid.h"

namespace cnn::tests {
namespace {

// No multiple of the alignment.
constexpr std::size_t engine_bytes = 100;

class LoopEngine final : public layers::cuda::FusedEngine {
 public:
  explicit LoopEngine(const layers::cuda::FusedGraph& graph) : operations_(operations_of(graph)) {}

  void run(Stream& /*stream*/, std::span<void* const> tensors, std::byte* workspace) override {
    std::fill_n(workspace, engine_bytes, std::byte{0xEE});
    run_by_loops(operations_, tensors);
  }

 private:
  layers::cuda::OperationGraph operations_;
};

template <class O>
void add_row(KernelTable& table) {
  const auto steps = [](const O& op, const Signature& asked) {
    return layers::cuda::steps_of(op, asked, [](const layers::cuda::FusedGraph& /*graph*/) {
      return std::optional(engine_bytes);
    });
  };
  table.add<O>(
      [steps](const O& op, const Signature& asked) {
        const auto found = steps(op, asked);
        return found ? std::optional(found->spec) : std::nullopt;
      },
      [steps](const O& op, const Signature& signature) {
        auto found = steps(op, signature);
        auto engine = std::make_unique<LoopEngine>(found->graph);
        return std::make_unique<grid::OnGrid>(
            layers::cuda::make_kernel(*std::move(found), std::move(engine)), grid::Order{});
      });
}

Backend backend_of(DataType compute) {
  Backend backend{.name = "fused engines", .table = {}, .image = Layout::nhwc, .compute = compute};
  add_row<layers::FusedConv>(backend.table);
  add_row<layers::FusedConvBackwardWeights>(backend.table);
  add_row<layers::ConvBackwardDataNorm>(backend.table);
  return backend;
}

class GridFusedConv : public testing::TestWithParam<Case> {};

TEST_P(GridFusedConv, GivesEachOperandToTheOperationThatReadsIt) {
  const Backend backend = backend_of(DataType::f16);
  const BuiltCase built = build(GetParam(), backend.compute);
  Interpreter values(*built.graph);
  std::size_t ran = 0;
  for (const Node& node : built.graph->nodes()) {
    const Subject subject(values, node);
    ran += check_node(backend, subject, GetParam().bf16_tolerance) ? 1U : 0U;
    values.adopt(node, views_of(subject.expected.after), views_of(subject.expected.out));
  }
  EXPECT_GT(ran, 0U);
}

std::vector<Case> cases() {
  std::vector<Case> result = fused_cases();
  std::erase_if(result, [](const Case& row) {
    return row.weight == Weight::heavy || !row.name.starts_with("fused_conv");
  });
  return result;
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Cuda, GridFusedConv, testing::ValuesIn(cases()), test_name);

}  // namespace
}  // namespace cnn::tests
