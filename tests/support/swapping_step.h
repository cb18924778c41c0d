#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/program.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn::tests {

// Returns a plan that computes x -> a -> b -> c and d = c - a / 2 on `count` floats each. Tensor a
// is swapped out after b (step 3) and returns for d (steps 5 and 6).
inline StepPlan swapping_plan(std::int64_t count = 64) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->input("x", floats(count));
  const Value a = emit(Scale(1), {x});
  const Value c = emit(Relu(), {emit(Scale(2), {a})});
  graph->output("d", emit(Combine(), {c, a}));
  Schedule schedule;
  schedule.steps = {{.action = Fetch{x.id}, .lane = Lane::copy_in},
                    {.action = Compute{NodeId{0}}},
                    {.action = Compute{NodeId{1}}},
                    {.action = Offload{a.id}, .lane = Lane::copy_out},
                    {.action = Compute{NodeId{2}}},
                    {.action = Fetch{a.id}, .lane = Lane::copy_in},
                    {.action = Compute{NodeId{3}}},
                    {.action = Offload{graph->outputs()[0].tensor}, .lane = Lane::copy_out}};
  return make_plan(graph, describe(*graph, test_kernels()), std::move(schedule));
}

// Returns the same plan with a third tier: tensor a goes on to the disk (step 4) while c is
// computed, and comes back to the host (step 6).
inline StepPlan storing_plan(std::int64_t count = 64) {
  const StepPlan swapped = swapping_plan(count);
  const TensorId a = std::get<Offload>(swapped.schedule.steps[3].action).tensor;
  Schedule schedule;
  for (std::size_t s = 0; s < swapped.schedule.steps.size(); ++s) {
    constexpr std::size_t left = 4, returns = 5;
    if (s == left) {
      schedule.steps.push_back({.action = Store{a}, .lane = Lane::disk, .after = {}});
    } else if (s == returns) {
      schedule.steps.push_back({.action = Load{a}, .lane = Lane::disk, .after = {}});
    }
    const Step& step = swapped.schedule.steps[s];
    schedule.steps.push_back({.action = step.action, .lane = step.lane, .after = {}});
  }
  return make_plan(swapped.graph, swapped.specs, std::move(schedule));
}

}  // namespace cnn::tests
