#pragma once

#include <cstddef>
#include <memory>

#include "runtime/program.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn::tests {

// Returns a plan that computes x -> a -> b -> c, copies c to the host and updates w with b.
inline StepPlan small_plan(std::size_t workspace = 0) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->input("x", floats(16));
  const Value w = graph->parameter("w", floats(16), {});
  const Value a = emit(Scale(2), {x});      // node 0
  const Value b = emit(Combine(), {a, w});  // node 1
  const Value c = emit(Combine(), {b, a});  // node 2
  emit(Descend(), {w, b});                  // node 3
  graph->output("c", c);
  return make_plan(graph, test_kernels({.workspace = workspace}));
}

}  // namespace cnn::tests
