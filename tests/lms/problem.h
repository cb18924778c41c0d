#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "lms/policy.h"
#include "runtime/memory_plan.h"
#include "runtime/schedule.h"
#include "tests/support/test_ops.h"

namespace cnn::tests {

// Every tensor takes a multiple of 64 bytes, so tests can compare exactly with analytical results.
inline constexpr std::size_t unit = alignment;
inline TensorDesc units(std::int64_t count) { return floats(count * 16); }

// Owns everything that a planning request refers to.
struct Problem {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::vector<KernelSpec> specs;
  Schedule schedule;
  StepId backward{};
  Costs costs;
  lms::Budget budget;
  lms::Options options;

  lms::Request request() const {
    return {.graph = *graph,
            .specs = specs,
            .schedule = schedule,
            .backward = backward,
            .costs = costs,
            .budget = budget,
            .options = options};
  }

  void add_cost(double seconds) { costs.seconds.push_back(seconds); }

  // Call when the graph is complete; the first `forward_nodes` nodes are the forward pass.
  void finish(std::size_t forward_nodes) {
    specs.resize(graph->nodes().size());
    schedule = make_schedule(*graph);
    for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
      const auto* compute = std::get_if<Compute>(&schedule.steps[s].action);
      if (compute != nullptr && index_of(compute->node) == forward_nodes) {
        backward = StepId{static_cast<std::uint32_t>(s)};
      }
    }
  }

  // Sets the budget in units and the bandwidths in units per second.
  void limit(double device, double out, double in) {
    budget = {.device = static_cast<std::size_t>(device * unit), .host = std::size_t{1} << 30U};
    costs.out_bytes_per_second = out * unit;
    costs.in_bytes_per_second = in * unit;
  }
};

// Returns a chain whose layers take 1 second forward and 2 seconds backward and stash 1 unit each.
// Gradients take no bytes.
inline Problem uniform_chain(int layers) {
  Problem result;
  std::vector<Value> stash;
  Value last = result.graph->state("w", units(0), {}, false);
  for (int i = 0; i < layers; ++i) {
    last = emit(Opaque({units(1)}), {last});
    stash.push_back(last);
    result.add_cost(1);
  }
  for (int i = layers; i-- > 0;) {
    last = emit(Opaque({units(0)}), {stash[static_cast<std::size_t>(i)], last});
    result.add_cost(2);
  }
  result.graph->output("gradient", last);
  result.finish(static_cast<std::size_t>(layers));
  return result;
}

// Returns a residual chain: each block makes two maps, in 4 seconds and in 2, and adds the second
// one to its input in 1, as ResNet does. All maps are stashed and have one unit.
inline Problem residual_chain(int blocks) {
  Problem result;
  std::vector<Value> stash;
  const auto add = [&](std::initializer_list<Value> from, double seconds) {
    stash.push_back(emit(Opaque({units(1)}), from));
    result.add_cost(seconds);
    return stash.back();
  };
  Value last = add({result.graph->state("w", units(0), {}, false)}, 1);
  for (int b = 0; b < blocks; ++b) {
    const Value inside = add({add({last}, 4)}, 2);
    last = add({inside, last}, 1);
  }
  const std::size_t forward = stash.size();
  while (!stash.empty()) {
    last = emit(Opaque({units(0)}), {stash.back(), last});
    result.add_cost(2);
    stash.pop_back();
  }
  result.graph->output("gradient", last);
  result.finish(forward);
  result.limit(0, 1, 1);
  return result;
}

// A uniform chain whose optimal step time without recomputation is known analytically.
struct Fixture {
  int layers = 0;
  double device = 0, out = 0, in = 0;  // units, units per second, units per second
  double seconds = 0;
};
inline constexpr Fixture fixtures[] = {
    {10, 10, 1, 1, 30},
    {10, 4, 1, 1, 30},
    {10, 4, 1.0 / 2, 1.0 / 2, 34},
    {10, 4, 0.25, 0.25, 54},
    {10, 4, 0.5, 0.125, 66},
    {10, 4, 0.125, 1, 70},
    {16, 2, 1.0 / 2, 0.5, 62},
    {16, 8, 0.3, 0.3, 182.0 / 3},
};

}  // namespace cnn::tests
