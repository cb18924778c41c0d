#include "lms/pressure.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "tests/lms/problem.h"
#include "tests/lms/step_case.h"

namespace cnn::lms {
namespace {

using tests::StepCase;
using tests::uniform_chain;
using tests::unit;

const Movable& movable(const Pressure& pressure, TensorId tensor) {
  const auto found = std::ranges::find(pressure.movables, tensor, &Movable::tensor);
  EXPECT_NE(found, pressure.movables.end());
  return *found;
}

TEST(Pressure, CountsTheLiveBytesAndTheTimeOfEveryStep) {
  const tests::Problem chain = uniform_chain(4);
  const Pressure found = pressure(chain.request());
  std::vector<double> units, before;
  for (const PressureStep& step : found.steps) {
    units.push_back(step.live / unit);
    before.push_back(step.before);
  }
  EXPECT_EQ(units, (std::vector<double>{1, 2, 3, 4, 4, 3, 2, 1}));
  EXPECT_EQ(before, (std::vector<double>{0, 1, 2, 3, 4, 6, 8, 10}));
  EXPECT_EQ(found.seconds, 12);
  EXPECT_EQ(found.steps.back().seconds, 2);
}

TEST(Pressure, NamesTheMovablesThatAStepDoesNotTouch) {
  const tests::Problem chain = uniform_chain(4);
  const Pressure found = pressure(chain.request());
  EXPECT_EQ(found.steps[2].away, (std::vector<std::uint32_t>{0}))
      << "step 2 reads root 1 and makes root 2";
  EXPECT_EQ(found.steps[4].away, (std::vector<std::uint32_t>{0, 1, 2})) << "it reads 3";
  EXPECT_EQ(found.steps[7].away, (std::vector<std::uint32_t>()))
      << "step 7 is the last use of root 0";
}

TEST(Pressure, DescribesTheUsesOfAMovable) {
  const tests::Problem chain = uniform_chain(4);
  const Pressure found = pressure(chain.request());
  const Movable& first = found.movables.front();
  EXPECT_EQ(first.bytes, unit);
  EXPECT_EQ(first.made, 0U);
  EXPECT_EQ(first.uses, (std::vector<std::uint32_t>{1, 7}));
  EXPECT_EQ(first.first_backward, 7U);
  EXPECT_EQ(first.last(), 7U);
  EXPECT_FALSE(first.on_host);
  EXPECT_TRUE(first.may_copy);
  EXPECT_EQ(first.again, 1) << "the time of the node that makes it";
  EXPECT_EQ(first.again_late, 1);
}

TEST(Pressure, TakesInputsFromTheHostForNothing) {
  tests::Problem problem;
  const Value x = problem.graph->input("x", tests::units(1));
  const Value a = emit(tests::Opaque({tests::units(1)}), {x});
  const Value b = emit(tests::Opaque({tests::units(1)}), {a});
  problem.graph->output("gradient", emit(tests::Opaque({tests::units(0)}), {b, x}));
  problem.costs.seconds = {1, 1, 1};
  problem.finish(2);
  const Pressure found = pressure(problem.request());
  const Movable& input = found.movables.back();
  EXPECT_EQ(input.tensor, x.id);
  EXPECT_TRUE(input.on_host);
  EXPECT_EQ(input.uses, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(input.again, 0);
  EXPECT_EQ(std::ranges::count(found.movables, true, &Movable::on_host), 1);
}

TEST(Pressure, CountsOnceWhatAnOutputTakesOver) {
  for (const bool in_place : {false, true}) {
    StepCase c;
    const Value a = c.make("conv", {c.images()});
    const Value b = c.make("relu", {a}, in_place);
    c.settle(c.make("loss_backward", {b}));
    const Pressure found = pressure(c.request());
    EXPECT_EQ(found.steps[1].live, in_place ? 1.0 * unit : 2.0 * unit) << in_place;
  }
}

TEST(Pressure, AddsTheWorkspaceOfAStep) {
  StepCase c;
  const Value a = c.make("conv", {c.images()});
  c.settle(c.make("loss_backward", {a}), /*workspace=*/3 * unit);
  StepCase plain;
  const Value same = plain.make("conv", {plain.images()});
  plain.settle(plain.make("loss_backward", {same}));
  EXPECT_EQ(pressure(c.request()).steps[0].live - pressure(plain.request()).steps[0].live,
            3.0 * unit);
}

TEST(Pressure, SharesTheTimeOfAMakerByBytes) {
  tests::Problem problem;
  const Value w = problem.graph->state("w", tests::units(0), {}, false);
  const std::vector<Value> both =
      emit_all(tests::Opaque({tests::units(3), tests::units(1)}), std::span<const Value>(&w, 1));
  problem.add_cost(4);
  const Value gradient = emit(tests::Opaque({tests::units(0)}), {both[0], both[1]});
  problem.add_cost(1);
  problem.graph->output("gradient", gradient);
  problem.finish(1);
  const Pressure found = pressure(problem.request());
  EXPECT_EQ(movable(found, both[0].id).again, 3);
  EXPECT_EQ(movable(found, both[1].id).again, 1);
}

TEST(Pressure, CannotMakeAgainWhatANodeThatMutatesMakes) {
  StepCase c;
  const Value weights = c.weights(1);
  const Value a = c.make("conv", {c.images(), weights});
  const Value sum = emit(tests::Descend(), {weights, a});
  const Value first = c.make("loss_backward", {a});
  c.make("read_sum", {first, sum});
  c.settle(first);
  const Pressure found = pressure(c.request());
  EXPECT_EQ(movable(found, sum.id).again, Movable::never);
  EXPECT_LT(movable(found, a.id).again, Movable::never);
}

}  // namespace
}  // namespace cnn::lms
