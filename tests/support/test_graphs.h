#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "runtime/program.h"
#include "runtime/schedule.h"
#include "tests/support/test_ops.h"

namespace cnn::tests {

// Returns a random graph of some tens of nodes on three lanes, one per seed, with inputs,
// variables, updates, in-place ops and outputs.
inline std::shared_ptr<const Graph> random_graph(unsigned seed) {
  std::mt19937 random(seed);
  auto graph = std::make_shared<Graph>();
  const TensorDesc desc = floats(1 + static_cast<std::int64_t>(random() % 300));
  std::vector<Value> values{graph->input("x", desc), graph->input("y", desc)};
  std::vector<Value> weights;
  for (const char* name : {"u", "v", "w"}) {
    weights.push_back(graph->parameter(name, desc, {}));
  }
  const std::vector<Lane> lanes{Lane::compute, Lane::compute, Lane::side, Lane::communicate};
  const auto any = [&](const std::vector<Value>& from) {
    // Prefers recent values, so that chains form; an occasional old one makes a live interval long.
    const std::size_t back =
        random() % 4 == 0 ? from.size() : std::min<std::size_t>(3, from.size());
    return from[from.size() - 1 - random() % back];
  };
  for (int n = 0; n < 40; ++n) {
    const TestOpOptions options{.lane = lanes[random() % lanes.size()],
                                .in_place = random() % 2 == 0};
    switch (random() % 5) {
      case 0:
        values.push_back(emit(Scale(0.5F, options), {any(values)}));
        break;
      case 1:
        values.push_back(emit(Relu(options), {any(values)}));
        break;
      case 2:
        values.push_back(emit(Combine(options), {any(values), any(values)}));
        break;
      case 3:
        values.push_back(emit(Combine(options), {any(values), any(weights)}));
        break;
      default: {
        const std::vector<Value> in{any(values), any(values)};
        for (const Value& out : emit_all(SumAndDifference(options), std::span<const Value>(in))) {
          values.push_back(out);
        }
      }
    }
  }
  for (const Value& weight : weights) {
    graph->output("sum", emit(Descend(), {weight, any(values)}));
  }
  graph->output("last", values.back());
  graph->output("middle", values[values.size() / 2]);
  graph->output("u", weights.front());
  return graph;
}

// Returns the nodes that make a tensor and all tensors that share bytes with it.
inline std::vector<NodeId> makers_of_root(const Graph& graph, TensorId tensor) {
  std::vector<NodeId> makers;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    if (std::ranges::any_of(graph.nodes()[n].outputs, [&](TensorId output) {
          return graph.root_of(output) == graph.root_of(tensor);
        })) {
      makers.push_back(NodeId{static_cast<std::uint32_t>(n)});
    }
  }
  return makers;
}

// Tries `attempts` random swaps and recomputations, of single nodes or of all makers of one tensor.
// Keeps those that give a valid plan and adds their number to `kept`.
inline StepPlan with_random_edits(StepPlan plan, unsigned seed, int attempts, int& kept) {
  std::mt19937 random(seed);
  const Graph& graph = *plan.graph;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    Schedule schedule = plan.schedule;
    const std::size_t out = 1 + random() % (schedule.steps.size() - 1);
    const std::size_t back = out + random() % (schedule.steps.size() - out);
    const auto at = [&](std::size_t step) {
      return schedule.steps.begin() + static_cast<std::ptrdiff_t>(step);
    };
    const NodeId node{static_cast<std::uint32_t>(random() % graph.nodes().size())};
    const TensorId made = graph.nodes()[index_of(node)].outputs.front();
    if (random() % 2 == 0) {
      const TensorId tensor = graph.root_of(made);
      schedule.steps.insert(at(back), {.action = Fetch{tensor}, .lane = Lane::copy_in});
      schedule.steps.insert(at(out), {.action = Offload{tensor}, .lane = Lane::copy_out});
    } else {
      const bool whole = graph.shares_bytes(made) && random() % 2 == 0;
      std::size_t step = back;
      for (const NodeId again : whole ? makers_of_root(graph, made) : std::vector{node}) {
        const Lane lane = graph.nodes()[index_of(again)].op->lane();
        schedule.steps.insert(at(step++), {.action = Compute{again}, .lane = lane});
      }
    }
    for (Step& step : schedule.steps) {
      step.after.clear();
    }
    try {
      plan = make_plan(plan.graph, plan.specs, std::move(schedule));
      ++kept;
    } catch (const Error&) {
      // An invalid edit: the tensor did not exist there, or the node changes something in place.
    }
  }
  return plan;
}

}  // namespace cnn::tests
