#include "lms/summary.h"

#include <algorithm>
#include <optional>

namespace cnn::lms {

bool may_move(const Graph& graph, TensorId tensor) {
  return graph.info(tensor).role == Role::activation &&
         std::ranges::none_of(graph.outputs(),
                              [&](const Output& output) { return output.tensor == tensor; });
}

std::vector<bool> runs_again(const Graph& graph, const Schedule& schedule) {
  std::vector<bool> ran(graph.nodes().size()), again;
  for (const Step& step : schedule.steps) {
    const auto* compute = std::get_if<Compute>(&step.action);
    again.push_back(compute != nullptr && ran[index_of(compute->node)]);
    if (compute != nullptr) {
      ran[index_of(compute->node)] = true;
    }
  }
  return again;
}

std::vector<NodeId> first_runs(const Graph& graph, const Schedule& schedule) {
  const std::vector<bool> again = runs_again(graph, schedule);
  std::vector<NodeId> nodes;
  for (std::size_t s = 0; s < again.size(); ++s) {
    const auto* compute = std::get_if<Compute>(&schedule.steps[s].action);
    if (compute != nullptr && !again[s]) {
      nodes.push_back(compute->node);
    }
  }
  return nodes;
}

std::vector<bool> leaves_device(const Graph& graph, const Schedule& schedule) {
  const std::vector<bool> again = runs_again(graph, schedule);
  std::vector<bool> leaves(graph.tensors().size());
  const auto leave = [&](TensorId tensor) {
    const std::optional<Alias>& alias = graph.info(tensor).alias;
    leaves[index_of(alias ? alias->root : tensor)] = true;
  };
  for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
    const Action& action = schedule.steps[s].action;
    const auto* offload = std::get_if<Offload>(&action);
    if (offload != nullptr && may_move(graph, offload->tensor)) {
      leave(offload->tensor);
    } else if (again[s]) {
      std::ranges::for_each(graph.nodes()[index_of(std::get<Compute>(action).node)].outputs, leave);
    }
  }
  return leaves;
}

Summary summarize(const Graph& graph, const Schedule& schedule) {
  Summary summary;
  std::vector<bool> left(graph.tensors().size()), stored(graph.tensors().size());
  for (const Step& step : schedule.steps) {
    const auto* offload = std::get_if<Offload>(&step.action);
    const auto* fetch = std::get_if<Fetch>(&step.action);
    if (offload != nullptr && may_move(graph, offload->tensor)) {
      summary.swapped_tensors += left[index_of(offload->tensor)] ? 0 : 1;
      left[index_of(offload->tensor)] = true;
      ++summary.swap_outs;
      summary.bytes_out += graph.info(offload->tensor).desc.bytes();
    } else if (fetch != nullptr && may_move(graph, fetch->tensor)) {
      ++summary.swap_ins;
      summary.bytes_in += graph.info(fetch->tensor).desc.bytes();
    } else if (const auto* store = std::get_if<Store>(&step.action)) {
      summary.stored_tensors += stored[index_of(store->tensor)] ? 0 : 1;
      stored[index_of(store->tensor)] = true;
      summary.bytes_stored += graph.info(store->tensor).desc.bytes();
    } else if (const auto* load = std::get_if<Load>(&step.action)) {
      summary.bytes_loaded += graph.info(load->tensor).desc.bytes();
    }
  }
  summary.recomputed =
      static_cast<std::size_t>(std::ranges::count(runs_again(graph, schedule), true));
  return summary;
}

}  // namespace cnn::lms
