// Runs every policy on the training step of a small residual network with the layers of real ones.

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/loss.h"
#include "layers/operands.h"
#include "layers/passes/pipeline.h"
#include "layers/pool.h"
#include "lms/catalog.h"
#include "lms/planned.h"
#include "lms/summary.h"
#include "runtime/cpu/reference_kernel.h"
#include "tests/lms/step_case.h"
#include "tests/support/test_step.h"

namespace cnn::lms {
namespace {

using ::testing::Each;
using ::testing::Not;
using tests::StepCase;

KernelTable reference_kernels() {
  KernelTable table;
  add_reference(table);
  return table;
}

Value block(Value x) {
  const Value y = layers::relu(layers::conv_bn(x, {.filters = 8, .kernel = 3}, {}));
  return layers::relu(layers::add(layers::conv_bn(y, {.filters = 8}, {}), x));
}

StepCase step_of(Graph& forward, Value loss, std::int64_t slices = 1) {
  forward.output("loss", loss);
  StepCase c;
  c.graph = layers::run_pipeline(forward, reference_kernels(), {.loss = loss.id, .slices = slices})
                .graphs.step;
  c.specs = describe(*c.graph, reference_kernels());
  c.schedule = make_schedule(*c.graph);
  c.costs = {.seconds = std::vector<double>(c.graph->nodes().size(), 1e-5),
             .out_bytes_per_second = 1e9,
             .in_bytes_per_second = 1e9};
  for (std::uint32_t s = 0; s < c.schedule.steps.size(); ++s) {
    if (tests::texts(*c.graph, c.schedule)[s].starts_with("softmax_cross_entropy_backward")) {
      c.backward = StepId{s};
    }
  }
  return c;
}

StepCase residual_step() {
  Graph forward;
  const TensorDesc images = layers::described({2, 3, 8, 8}, DataType::f32);
  Value x = forward.state("images", images, {}, false);
  x = layers::max_pool(layers::relu(layers::conv_bn(x, {.filters = 8, .kernel = 3}, {})), {});
  x = block(block(block(x)));
  const Value step = forward.input("step", layers::described({}, DataType::i32));
  const Value labels = emit(layers::SyntheticLabels(2, 10, 1), {step});
  const Value logits = layers::dense(layers::spatial_mean(x), {.units = 10});
  return step_of(forward, layers::softmax_cross_entropy(logits, labels));
}

std::vector<float> outcome(const StepCase& c, const Schedule& schedule) {
  tests::TestStep step(c.planned(schedule), reference_kernels());
  step.run();
  step.run();
  return step.outcome();
}

// Two wide convolutions without norms, like the first layers of VGG; all other tensors are small.
StepCase step_of_wide_convolutions(std::int64_t batch = 2, std::int64_t slices = 1) {
  Graph forward;
  Value x =
      forward.state("images", layers::described({batch, 3, 32, 32}, DataType::f32), {}, false);
  for (int conv = 0; conv < 2; ++conv) {
    x = layers::conv(x, {.filters = 8, .kernel = 3, .relu = true});
  }
  x = layers::max_pool(x, {});
  const Value step = forward.input("step", layers::described({}, DataType::i32));
  const Value labels = emit(layers::SyntheticLabels(batch, 10, 1), {step});
  const Value logits = layers::dense(layers::spatial_mean(x), {.units = 10});
  return step_of(forward, layers::softmax_cross_entropy(logits, labels), slices);
}

constexpr std::size_t wide_map = std::size_t{2} * 8 * 32 * 32 * sizeof(float);

// A convolution's gradients need its input and dy, then dy and dx; the ReLU before it needs dx and
// the input again. If the input is swapped out twice, only two maps are live at a time.
TEST(Planned, HoldsTwoMapsOfAConvolutionAtATime) {
  const StepCase c = step_of_wide_convolutions();
  const std::size_t floor = min_feasible_bytes(c.request());
  EXPECT_GE(floor, 2 * wide_map);
  EXPECT_LT(floor, wide_map * 5 / 2);
}

// Two maps of a quarter of the batch take less than one map of the whole batch.
TEST(Planned, NeedsNoMapOfTheWholeBatchWhereAStepComputesInSlices) {
  const std::size_t map_of_batch = 4 * wide_map;
  EXPECT_GT(min_feasible_bytes(step_of_wide_convolutions(8).request()), 2 * map_of_batch);
  EXPECT_LT(min_feasible_bytes(step_of_wide_convolutions(8, 4).request()), map_of_batch);
}

TEST(Planned, KeepsTheBitsOfAStepInSlices) {
  for (const std::int64_t slices : {2, 3}) {
    StepCase c = step_of_wide_convolutions(5, slices);
    const std::vector<float> expected = outcome(c, c.schedule);
    for (const Recomputation recompute : {Recomputation::off, Recomputation::full}) {
      c.options.recompute = recompute;
      c.budget.device = min_feasible_bytes(c.request());
      const Plan plan = find_policy("planned").plan(c.request());
      EXPECT_TRUE(summarize(*c.graph, plan.schedule).moves());
      EXPECT_EQ(outcome(c, plan.schedule), expected) << slices;
    }
  }
}

TEST(Planned, KeepsTheBitsWhereATensorLeavesTwice) {
  StepCase c = step_of_wide_convolutions();
  const std::vector<float> expected = outcome(c, c.schedule);
  c.options.recompute = Recomputation::off;
  c.budget.device = min_feasible_bytes(c.request());
  const Plan plan = find_policy("planned").plan(c.request());
  std::map<TensorId, int> fetches;
  for (const Step& step : plan.schedule.steps) {
    if (const auto* fetch = std::get_if<Fetch>(&step.action)) {
      ++fetches[fetch->tensor];
    }
  }
  EXPECT_TRUE(std::ranges::any_of(fetches, [](const auto& one) { return one.second > 1; }));
  EXPECT_EQ(outcome(c, plan.schedule), expected);
}

class PolicyOnNetwork : public ::testing::TestWithParam<PolicyRow> {};

INSTANTIATE_TEST_SUITE_P(Lms, PolicyOnNetwork, ::testing::ValuesIn(policies()),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_P(PolicyOnNetwork, ChangesNoBit) {
  StepCase c = residual_step();
  const std::size_t unlimited = c.peak(c.schedule).device_bytes;
  const std::vector<float> expected = outcome(c, c.schedule);
  EXPECT_THAT(expected, Each(Not(::testing::IsNan())));
  for (const std::size_t tenths : {10, 8, 6}) {
    for (const SyncMode sync : {SyncMode::none, SyncMode::both}) {
      c.options.sync_mode = sync;
      c.budget.device = unlimited * tenths / 10;
      EXPECT_EQ(outcome(c, GetParam().plan(c.request()).schedule), expected) << tenths;
    }
  }
}

TEST_P(PolicyOnNetwork, ChangesNoBitOfAStepInSlices) {
  StepCase c = step_of_wide_convolutions(8, 4);
  const std::size_t unlimited = c.peak(c.schedule).device_bytes;
  const std::vector<float> expected = outcome(c, c.schedule);
  for (const std::size_t tenths : {9, 6}) {
    c.budget.device = unlimited * tenths / 10;
    EXPECT_EQ(outcome(c, GetParam().plan(c.request()).schedule), expected) << tenths;
  }
}

TEST_P(PolicyOnNetwork, SavesMemory) {
  StepCase c = residual_step();
  const std::size_t unlimited = c.peak(c.schedule).device_bytes;
  c.budget.device = unlimited * 8 / 10;
  const Plan plan = GetParam().plan(c.request());
  const std::size_t peak = c.peak(plan.schedule).device_bytes;
  if (GetParam().name == "none") {
    EXPECT_EQ(peak, unlimited);
  } else {
    EXPECT_LT(peak, unlimited);
  }
}

TEST_P(PolicyOnNetwork, LetsNothingLeaveWhereNoTensorMay) {
  StepCase c = residual_step();
  c.budget.device = c.peak(c.schedule).device_bytes * 7 / 10;
  c.options.n_tensors = 0;
  EXPECT_FALSE(summarize(*c.graph, GetParam().plan(c.request()).schedule).moves());
}

TEST_P(PolicyOnNetwork, LetsOnlyCandidatesLeave) {
  StepCase c = residual_step();
  c.budget.device = c.peak(c.schedule).device_bytes * 7 / 10;
  c.options.included_types = {"^nothing$"};
  EXPECT_FALSE(summarize(*c.graph, GetParam().plan(c.request()).schedule).moves());
}

TEST_P(PolicyOnNetwork, HasNothingToDoWithoutABackwardPass) {
  StepCase c = residual_step();
  c.backward = StepId{static_cast<std::uint32_t>(c.schedule.steps.size())};
  c.budget.device = c.peak(c.schedule).device_bytes * 7 / 10;
  EXPECT_FALSE(summarize(*c.graph, GetParam().plan(c.request()).schedule).moves());
}

}  // namespace
}  // namespace cnn::lms
