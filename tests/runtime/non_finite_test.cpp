#include "runtime/non_finite.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/cpu/device.h"
#include "runtime/executor.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using tests::Combine;
using tests::Descend;
using tests::floats;
using tests::Scale;
using tests::test_kernels;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// Runs a step once on ones, except for one value of its input and one of each variable.
struct Ran {
  explicit Ran(const std::shared_ptr<Graph>& graph)
      : plan(make_plan(graph, test_kernels())),
        variables(*graph),
        storage(device.allocate(variables.bytes())),
        arena(device.allocate(plan.memory.device_bytes)) {
    variables.attach(storage.data());
  }
  std::optional<NonFiniteTensor> first(float x, float w) {
    for (const Variable& variable : variables.all()) {
      const auto values = variables.view(variable).as<float>();
      std::ranges::fill(values, 1.0F);
      values[1] = w;
    }
    std::vector<float> input(4, 1.0F);
    input[2] = x;
    const std::vector<TensorView> inputs{
        {.desc = floats(4), .data = reinterpret_cast<std::byte*>(input.data())}};
    const std::span<std::byte> bytes(arena.data(), arena.bytes());
    Executor(make_program(plan, test_kernels()), device, variables, bytes).run(inputs);
    NonFiniteReader reader(device);
    return first_non_finite({.plan = plan, .variables = variables, .arena = bytes}, reader);
  }

  CpuDevice device;
  StepPlan plan;
  Variables variables;
  Buffer storage, arena;
};

// Returns a graph of sum = combine(scale(x), w).
std::shared_ptr<Graph> graph_of(float factor) {
  auto graph = std::make_shared<Graph>();
  const Value w = graph->parameter("w", floats(4), {});
  const Value y = emit(Scale(factor), {graph->input("x", floats(4))});
  graph->output("sum", emit(Combine(), {y, w}));
  return graph;
}

TEST(FirstNonFinite, IsNothingWhereAllIsFinite) {
  EXPECT_FALSE(Ran(graph_of(2)).first(1, 1).has_value());
}

TEST(FirstNonFinite, NamesAVariable) {
  const auto found = Ran(graph_of(2)).first(1, not_a_number);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->name, "w");
  EXPECT_EQ(found->made_by, "");
  EXPECT_EQ(found->count, 1);
  EXPECT_EQ(found->elements, 4);
}

TEST(FirstNonFinite, NamesTheNodeThatMadeIt) {
  const auto found = Ran(graph_of(infinity)).first(1, not_a_number);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->name, "scale#0");
  EXPECT_EQ(found->made_by, "scale#0");
  EXPECT_EQ(found->variable, "");
  EXPECT_EQ(found->count, 4);
}

TEST(FirstNonFinite, PassesOverAVariableThatTheStepChanges) {
  auto graph = std::make_shared<Graph>();
  const Value w = graph->parameter("w", floats(4), {});
  const Value g = emit(Scale(2), {graph->input("x", floats(4))});
  graph->output("sum", emit(Descend(), {w, g}));
  const auto found = Ran(graph).first(1, infinity);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->name, "descend#1");
  EXPECT_EQ(found->variable, "w");
}

TEST(NonFiniteReader, CountsEachTypeAndNotWhatLiesBetweenPixels) {
  CpuDevice device;
  NonFiniteReader reader(device);
  std::vector<float> values{1, not_a_number, infinity, -infinity, 3e38F, 0, infinity, 2};
  const auto count = [&](TensorDesc desc) {
    return reader.count(
        {.desc = std::move(desc), .data = reinterpret_cast<std::byte*>(values.data())});
  };
  EXPECT_EQ(count({.shape = {8}}), 4);
  EXPECT_EQ(count({.shape = {8}, .type = DataType::i32}), 0);
  // The view selects channels 0 and 1 of two pixels that lie four elements apart.
  EXPECT_EQ(count({.shape = {1, 2, 2, 1}, .layout = Layout::nhwc, .pitch = 4}), 1);
  std::vector<Float16> halves{to_f16(1), to_f16(infinity), to_f16(not_a_number), to_f16(65504)};
  EXPECT_EQ(reader.count({.desc = {.shape = {4}, .type = DataType::f16},
                          .data = reinterpret_cast<std::byte*>(halves.data())}),
            2);
  std::vector<BFloat16> brains{to_bf16(1), to_bf16(-infinity), to_bf16(not_a_number)};
  EXPECT_EQ(reader.count({.desc = {.shape = {3}, .type = DataType::bf16},
                          .data = reinterpret_cast<std::byte*>(brains.data())}),
            2);
}

TEST(CountNonFinite, TakesAllTypesAndLeavesGapsOut) {
  std::vector<float> values{1, infinity, -infinity, not_a_number, 0, 3e38F};
  const auto view = [&](TensorDesc desc) {
    return TensorView{.desc = std::move(desc), .data = reinterpret_cast<std::byte*>(values.data())};
  };
  EXPECT_EQ(count_non_finite(view(floats(6))), 3);
  EXPECT_EQ(count_non_finite(view({.shape = {6}, .type = DataType::i32})), 0);
  TensorDesc gapped{.shape = {1, 1, 1, 3}, .type = DataType::f32, .layout = Layout::nhwc};
  gapped.pitch = 2;  // the view has elements 0, 2 and 4
  EXPECT_EQ(count_non_finite(view(gapped)), 1);
}

}  // namespace
}  // namespace cnn
