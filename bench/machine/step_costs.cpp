#include "bench/machine/step_costs.h"

#include <algorithm>
#include <map>

#include "layers/host_variable.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

double bytes_of(const Graph& graph, TensorId id) {
  return static_cast<double>(graph.info(id).desc.bytes());
}

// Returns the bytes of operands that lie inside another operand of the node, as parts of a concat
// or split: they do not move.
double bytes_in_place(const Graph& graph, const Node& node) {
  double bytes = 0;
  const auto count = [&](const std::vector<TensorId>& parts, const std::vector<TensorId>& wholes) {
    for (auto part = parts.begin(); part != parts.end(); ++part) {
      const auto& alias = graph.info(*part).alias;
      // A repeated part is copied.
      const bool first = std::find(parts.begin(), part, *part) == part;
      if (alias && first && std::ranges::find(wholes, alias->root) != wholes.end()) {
        bytes += 2 * bytes_of(graph, *part);  // saves a read and a write
      }
    }
  };
  count(node.inputs, node.outputs);
  count(node.outputs, node.inputs);
  return bytes;
}

void add(NodeCost& sum, const NodeCost& cost) {
  sum.flops += cost.flops;
  sum.bytes += cost.bytes;
  sum.seconds += cost.seconds;
}

std::vector<TensorDesc> inputs_of(const Graph& graph, const Node& node) {
  std::vector<TensorDesc> in;
  in.reserve(node.inputs.size());
  for (const TensorId input : node.inputs) {
    in.push_back(graph.info(input).desc);
  }
  return in;
}

}  // namespace

double needed_flops(const Graph& graph, const Node& node, const KernelSpec* spec) {
  if (spec != nullptr && spec->flops) {
    return *spec->flops;
  }
  return node.op->flops(inputs_of(graph, node));
}

double operand_bytes(const Graph& graph, const Node& node) {
  std::vector<TensorDesc> out;
  for (const TensorId output : node.outputs) {
    out.push_back(graph.info(output).desc);
  }
  if (const auto moved = layers::moved_bytes(*node.op, inputs_of(graph, node), out)) {
    return *moved;
  }
  double bytes = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const double passes = (node.op->reads(i) ? 1 : 0) + (node.op->mutates(i) ? 1 : 0);
    bytes += passes * bytes_of(graph, node.inputs[i]);
  }
  for (const TensorId output : node.outputs) {
    bytes += bytes_of(graph, output);
  }
  return bytes - bytes_in_place(graph, node);
}

double reread_bytes(const Graph& graph, const Node& node) {
  return static_cast<double>(node.op->reread_bytes(inputs_of(graph, node)));
}

std::vector<NodeCost> node_costs(const Graph& graph, const Ceilings& ceilings,
                                 std::span<const KernelSpec> specs) {
  check(specs.empty() || specs.size() == graph.nodes().size(),
        "node_costs: one spec for each node");
  std::vector<NodeCost> costs;
  for (const Node& node : graph.nodes()) {
    const KernelSpec* const spec = specs.empty() ? nullptr : &specs[costs.size()];
    NodeCost cost{.flops = needed_flops(graph, node, spec),
                  .bytes = operand_bytes(graph, node) + reread_bytes(graph, node)};
    if (spec != nullptr) {
      cost.bytes += static_cast<double>(spec->extra_traffic);
    }
    cost.seconds =
        std::max(cost.flops / ceilings.flops_per_second, cost.bytes / ceilings.bytes_per_second);
    costs.push_back(cost);
  }
  return costs;
}

std::vector<OpCost> costs_by_op(const Graph& graph, const std::vector<NodeCost>& costs) {
  check(costs.size() == graph.nodes().size(), "costs_by_op: one cost for each node");
  std::map<std::string, OpCost> by_op;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const std::string name(graph.nodes()[i].op->name());
    OpCost& sum = by_op[name];
    sum.op = name;
    ++sum.nodes;
    add(sum.cost, costs[i]);
  }
  std::vector<OpCost> result;
  result.reserve(by_op.size());
  for (auto& [name, cost] : by_op) {
    result.push_back(std::move(cost));
  }
  std::ranges::stable_sort(result, std::ranges::greater{},
                           [](const OpCost& op) { return op.cost.seconds; });
  return result;
}

}  // namespace cnn::bench
