// Tests fused convolutions of cuDNN engines: the operand of each tensor in the engine's graph and
// our kernels around the engine. Reference loops of the graph stand in for the engine.

#include "layers/cuda/fused_steps.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "layers/cuda/engine_workspace.h"
#include "layers/fused_conv.h"
#include "layers/operands.h"
#include "tests/layers/cases.h"
#include "tests/layers/conformance.h"
#include "tests/layers/cuda_grid/operation_loops.h"
#include "tests/support/grid/on_grid.h"

namespace cnn::tests {
namespace {

using layers::cuda::steps_of;

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
  const auto steps = [](const O& op, const Signature& request) {
    return layers::cuda::steps_of(op, request, [](const layers::cuda::FusedGraph& /*graph*/) {
      return std::optional(engine_bytes);
    });
  };
  table.add<O>(
      [steps](const O& op, const Signature& request) {
        const auto found = steps(op, request);
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

constexpr std::int64_t channels = 8, side = 16;

HostTensor plain_tensor(const Shape& shape) {
  return HostTensor(layers::described(shape, DataType::f32));
}

HostTensor vector_of(const std::function<float(std::int64_t)>& value) {
  HostTensor result = plain_tensor({channels});
  for (std::int64_t c = 0; c < channels; ++c) {
    result.view().as<float>()[static_cast<std::size_t>(c)] = value(c);
  }
  return result;
}

// The statistics of a norm whose slope and offset have no exact 16-bit value.
struct Norm {
  HostTensor mean = vector_of([](std::int64_t c) { return 1.3F + 0.17F * static_cast<float>(c); });
  HostTensor r = vector_of([](std::int64_t c) { return 0.71F + 0.013F * static_cast<float>(c); });
  HostTensor gamma = vector_of([](std::int64_t c) { return c % 3 == 2 ? -0.9F : 1.1F; });
  HostTensor beta = vector_of([](std::int64_t c) { return -0.33F * static_cast<float>(c % 4); });
  HostTensor a = vector_of([](std::int64_t) { return 0.0F; });
  HostTensor b = vector_of([](std::int64_t) { return 0.0F; });

  explicit Norm(DataType type) {
    for (std::size_t c = 0; c < channels; ++c) {
      const float slope = gamma.view().as<float>()[c] * r.view().as<float>()[c];
      a.view().as<float>()[c] = slope;
      b.view().as<float>()[c] = beta.view().as<float>()[c] - slope * mean.view().as<float>()[c];
    }
    round_to(type, a.view());
    round_to(type, b.view());
  }

  // Returns adjacent numbers of the type around the pixel value at which the ReLU opens.
  HostTensor image(DataType type) const {
    HostTensor x = plain_tensor({1, channels, side, side});
    for (std::size_t i = 0; i < x.view().as<float>().size(); ++i) {
      const std::size_t c = i / (side * side);
      const double zero = -static_cast<double>(b.view().as<float>()[c]) / a.view().as<float>()[c];
      const double step = (type == DataType::f16 ? 0x1p-11 : 0x1p-8) * std::abs(zero);
      const double place = static_cast<double>(i % (side * side)) - side * side / 2.0;
      x.view().as<float>()[i] = static_cast<float>(zero + step * place / 16);
    }
    round_to(type, x.view());
    return x;
  }
};

HostTensor identity() {
  HostTensor w = plain_tensor({channels, channels, 1, 1});
  std::ranges::fill(w.view().as<float>(), 0.0F);
  for (std::size_t c = 0; c < channels; ++c) {
    w.view().as<float>()[c * channels + c] = 1;
  }
  return w;
}

class GateAtTheEdge : public testing::TestWithParam<DataType> {
 protected:
  // Returns which outputs of an op with an identity convolution are above 0.
  std::vector<bool> above_zero(const Op& op, const std::vector<const HostTensor*>& in,
                               const std::vector<TensorDesc>& types) const {
    std::vector<TensorView> views;
    for (const HostTensor* tensor : in) {
      views.push_back(tensor->view());
    }
    const auto run =
        run_op(backend_of(GetParam()).table, op, {.in = types, .out = op.infer(types)}, views);
    std::vector<bool> result;
    for (const float value : run.value().out.front().view().as<float>()) {
      result.push_back(value > 0);
    }
    return result;
  }

  TensorDesc image_desc() const { return layers::described({1, channels, side, side}, GetParam()); }
  static TensorDesc weights() {
    return layers::described({channels, channels, 1, 1}, DataType::f32);
  }
};

TEST_P(GateAtTheEdge, IsTheSameInBothPasses) {
  const DataType type = GetParam();
  const Norm norm(type);
  const HostTensor x = norm.image(type), w = identity();
  const TensorDesc narrow = layers::described({channels}, type);
  const TensorDesc wide = layers::described({channels}, DataType::f32);
  const std::vector<bool> forward =
      above_zero(layers::FusedConv({.window = {}, .prologue = true}), {&x, &w, &norm.a, &norm.b},
                 {image_desc(), weights(), narrow, narrow});
  EXPECT_NE(std::ranges::count(forward, true), 0);
  EXPECT_NE(std::ranges::count(forward, false), 0);

  HostTensor ones = plain_tensor(x.desc().shape);
  std::ranges::fill(ones.view().as<float>(), 1.0F);
  const HostTensor zero = vector_of([](std::int64_t) { return 0.0F; });
  const HostTensor one = vector_of([](std::int64_t) { return 1.0F; });
  const std::vector<TensorDesc> types{image_desc(), weights(), image_desc(), wide,
                                      wide,         wide,      wide};
  const layers::ConvBackwardDataNorm backward{layers::Window{}};
  EXPECT_EQ(above_zero(backward, {&ones, &w, &x, &zero, &one, &norm.a, &norm.b}, types), forward);
  // With the norm's slope and offset before rounding, the gate would differ at some pixels.
  EXPECT_NE(
      above_zero(backward, {&ones, &w, &x, &norm.mean, &norm.r, &norm.gamma, &norm.beta}, types),
      forward);
}

INSTANTIATE_TEST_SUITE_P(Cuda, GateAtTheEdge, testing::Values(DataType::f16, DataType::bf16),
                         [](const auto& row) { return std::string(name_of(row.param)); });

// A fused convolution of 1x1 from x [2,8,4,4] to y [2,16,4,4].
Signature forward_signature(DataType type) {
  return {.in = {{.shape = {2, 8, 4, 4}, .type = type}, {.shape = {16, 8, 1, 1}, .type = type}},
          .out = {{.shape = {2, 16, 4, 4}, .type = type}}};
}

const layers::cuda::FindFusedWorkspace any_engine = [](const layers::cuda::FusedGraph&) {
  return std::optional(engine_bytes);
};

TEST(FusedSteps, AskForNoEngineInF32) {
  const auto fails = [](const layers::cuda::FusedGraph&) -> std::optional<std::size_t> {
    ADD_FAILURE() << "an engine was asked for";
    return std::nullopt;
  };
  EXPECT_FALSE(
      steps_of(layers::FusedConv({.window = {}}), forward_signature(DataType::f32), fails));
}

TEST(FusedSteps, AreNoneWhereTheLibraryHasNoEngine) {
  const auto none = [](const layers::cuda::FusedGraph&) -> std::optional<std::size_t> {
    return std::nullopt;
  };
  EXPECT_FALSE(steps_of(layers::FusedConv({.window = {}}), forward_signature(DataType::f16), none));
}

// Two vectors of 16 numbers in f32, 64 bytes each, precede the engine's own workspace.
TEST(FusedSteps, PutStatisticsThatNobodyReadsIntoScratch) {
  const auto steps = steps_of(layers::FusedConv({.window = {}, .statistics = false}),
                              forward_signature(DataType::f16), any_engine);
  ASSERT_TRUE(steps);
  EXPECT_TRUE(steps->graph.statistics);
  EXPECT_EQ(steps->scratch_bytes, 128U);
  EXPECT_EQ(steps->spec.workspace, 128 + layers::cuda::planned_for_engine(engine_bytes));
  EXPECT_EQ(steps->spec.out.size(), 1U);
}

TEST(FusedSteps, GiveStatisticsThatAreReadAsOutputsInF32) {
  Signature request = forward_signature(DataType::f16);
  request.out.insert(request.out.end(), 2, {.shape = {16}});
  const auto steps =
      steps_of(layers::FusedConv({.window = {}, .statistics = true}), request, any_engine);
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->scratch_bytes, 0U);
  ASSERT_EQ(steps->spec.out.size(), 3U);
  EXPECT_EQ(steps->spec.out[1].type, DataType::f32);
  EXPECT_EQ(steps->spec.out[1].shape, Shape({16}));
}

}  // namespace
}  // namespace cnn::tests
