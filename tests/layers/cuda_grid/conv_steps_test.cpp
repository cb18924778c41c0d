// Tests our kernels around a cuDNN engine on the emulated grid: padded channels, widened weight
// gradients, bias gradients and our own epilogue. The op's reference loops stand in for the engine.

#include "layers/cuda/conv_steps.h"

#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "tests/layers/cases.h"
#include "tests/layers/conformance.h"
#include "tests/layers/cuda_grid/operation_loops.h"
#include "tests/support/grid/on_grid.h"

namespace cnn::tests {
namespace {

using layers::Conv2d;
using layers::Conv2dBackwardData;
using layers::Conv2dBackwardWeights;
using layers::ConvAttributes;
using layers::cuda::ConvEngine;
using layers::cuda::ConvGraph;
using layers::cuda::ConvOperands;

// Not a multiple of the alignment, so the next block in the workspace must be aligned again.
constexpr std::size_t engine_bytes = 100;

// Computes a graph by reference loops on nhwc operands.
class LoopEngine final : public ConvEngine {
 public:
  explicit LoopEngine(const ConvGraph& graph)
      : operations_(operations_of(graph)), has_bias_(graph.bias) {}

  void run(Stream& /*stream*/, const ConvOperands& o) override {
    std::fill_n(o.workspace, engine_bytes, std::byte{0xEE});
    std::vector<void*> addresses{o.x, o.w};
    if (has_bias_) {
      addresses.push_back(o.bias);
    }
    addresses.push_back(o.y);
    run_by_loops(operations_, addresses);
  }

 private:
  layers::cuda::OperationGraph operations_;
  bool has_bias_;
};

// The engines of a table: only plain convolutions, or convolutions with bias too.
enum class Engines : std::uint8_t { plain, with_bias };

template <class O>
void add_row(KernelTable& table, Engines engines, grid::Order order) {
  const auto steps = [engines](const O& op, const Signature& request) {
    return layers::cuda::steps_of(
        op, request, [engines](const ConvGraph& graph) -> std::optional<std::size_t> {
          return graph.bias && engines == Engines::plain ? std::nullopt
                                                         : std::optional(engine_bytes);
        });
  };
  table.add<O>(
      [steps](const O& op, const Signature& request) {
        const auto found = steps(op, request);
        return found ? std::optional(found->spec) : std::nullopt;
      },
      [steps, order](const O& op, const Signature& signature) {
        auto found = steps(op, signature);
        auto engine = std::make_unique<LoopEngine>(found->graph);
        return std::make_unique<grid::OnGrid>(
            layers::cuda::make_kernel(*std::move(found), std::move(engine)), order);
      });
}

Backend backend_of(DataType compute, Engines engines, grid::Order order) {
  Backend backend{.name = engines == Engines::plain ? "plain engines" : "engines with bias",
                  .table = {},
                  .image = Layout::nhwc,
                  .compute = compute};
  add_row<Conv2d>(backend.table, engines, order);
  add_row<Conv2dBackwardData>(backend.table, engines, order);
  add_row<Conv2dBackwardWeights>(backend.table, engines, order);
  return backend;
}

class GridConv : public testing::TestWithParam<Case> {};

TEST_P(GridConv, StepsAroundAnEngineComputeWhatTheOpDefines) {
  for (const DataType compute : {DataType::f32, DataType::f16, DataType::bf16}) {
    const BuiltCase built = build(GetParam(), compute);
    Interpreter values(*built.graph);
    const double tolerance =
        compute == DataType::f32 ? GetParam().tolerance : GetParam().bf16_tolerance;
    for (const Node& node : built.graph->nodes()) {
      const Subject subject(values, node);
      for (const Engines engines : {Engines::plain, Engines::with_bias}) {
        for (const grid::Order order : grid::all_orders()) {
          const Backend backend = backend_of(compute, engines, order);
          if (const auto run = check_node(backend, subject, tolerance)) {
            check_pitched(backend, subject, *run);
          }
        }
      }
      values.adopt(node, views_of(subject.expected.after), views_of(subject.expected.out));
    }
  }
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Cuda, GridConv, testing::ValuesIn(conv_cases()), test_name);

TensorDesc image(const Shape& shape, DataType type) {
  return {.shape = shape, .type = type, .layout = Layout::nhwc};
}

// Returns the spec of a 3x3 convolution from x [2,C,8,8] to y [2,4,8,8]; y takes 1024 bytes in 16
// bits.
KernelSpec forward_spec(ConvAttributes a, std::int64_t channels, Engines engines) {
  a.window = {
      .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_bottom = 1, .pad_left = 1, .pad_right = 1};
  Signature request{
      .in = {image({2, channels, 8, 8}, DataType::f16), image({4, channels, 3, 3}, DataType::f16)},
      .out = {image({2, 4, 8, 8}, DataType::f16)}};
  if (a.bias) {
    request.in.push_back({.shape = {4}, .type = DataType::f16});
  }
  if (a.residual) {
    request.in.push_back(request.out[0]);
  }
  return backend_of(DataType::f16, engines, {}).table.describe(Conv2d(a), request).value();
}

TEST(ConvTraffic, IsThatOfTheOperandsWhereAnEngineDoesAll) {
  EXPECT_EQ(forward_spec({}, 8, Engines::plain).extra_traffic, 0U);
  EXPECT_EQ(forward_spec({.bias = true, .relu = true}, 8, Engines::with_bias).extra_traffic, 0U);
}

TEST(ConvTraffic, HasTheResultOnceMoreThroughMemoryForAnEpilogueOfOurOwn) {
  EXPECT_EQ(forward_spec({.relu = true}, 8, Engines::with_bias).extra_traffic, 2U * 1024);
  EXPECT_EQ(forward_spec({.bias = true}, 8, Engines::plain).extra_traffic, 2U * 1024);
  EXPECT_EQ(forward_spec({.bias = true, .residual = true, .relu = true}, 8, Engines::with_bias)
                .extra_traffic,
            2U * 1024);
}

TEST(ConvTraffic, HasPaddedOperandsWrittenAndReadAgain) {
  // With four padded channels, x takes 2*4*64*2 = 1024 bytes and w 4*4*9*2 = 288.
  EXPECT_EQ(forward_spec({}, 3, Engines::plain).extra_traffic, 2U * (1024 + 288));
}

TEST(ConvTraffic, HasWeightGradientsThatAreMadeWideWrittenAndReadAgain) {
  const ConvAttributes a{.window = {.kernel_h = 3, .kernel_w = 3}, .bias = true};
  const auto extra = [&](std::int64_t channels, DataType type) {
    const Shape w{4, channels, 3, 3};
    const Signature request{.in = {image({2, channels, 8, 8}, type), image({2, 4, 6, 6}, type)},
                            .out = {image(w, DataType::f32), {.shape = {4}}}};
    return backend_of(type, Engines::plain, {})
        .table.describe(Conv2dBackwardWeights(a, w), request)
        .value()
        .extra_traffic;
  };
  EXPECT_EQ(extra(16, DataType::f32), 0U);
  EXPECT_EQ(extra(16, DataType::f16), 2U * 4 * 16 * 9 * 2);
  // With eight padded channels, x takes 2*8*64*2 = 2048 bytes and w 4*8*9*2 = 576.
  EXPECT_EQ(extra(3, DataType::f16), 2U * (2048 + 576));
}

}  // namespace
}  // namespace cnn::tests
