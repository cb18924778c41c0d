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

}  // namespace cnn::tests
