#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/machine/backend.h"
#include "runtime/program.h"

namespace cnn::bench {

// The cost of a node on a device of given ceilings.
struct NodeCost {
  double flops = 0;
  double bytes = 0;  // read and written
  double seconds = 0;
};

// Floating-point operations of a node: what its op counts, or what the kernel's algorithm needs.
double needed_flops(const Graph& graph, const Node& node, const KernelSpec* spec = nullptr);

// Bytes of a node's operands, each moved once; what the node writes in place counts twice, what it
// would join or take apart but lies in place already not at all.
double operand_bytes(const Graph& graph, const Node& node);

// Bytes that must be read again however the node is computed, see Op::reread_bytes.
double reread_bytes(const Graph& graph, const Node& node);

// Returns the costs by NodeId: bytes = operand_bytes + reread_bytes + extra_traffic of the kernel's
// spec, seconds = max(flops / peak, bytes / bandwidth). Without specs kernels are taken to run in
// one pass. Throws Error if there are specs, but not one for each node.
std::vector<NodeCost> node_costs(const Graph& graph, const Ceilings& ceilings,
                                 std::span<const KernelSpec> specs = {});

// The costs of all nodes of one op together.
struct OpCost {
  std::string op;
  std::size_t nodes = 0;
  NodeCost cost;
};
// Most seconds first.
std::vector<OpCost> costs_by_op(const Graph& graph, const std::vector<NodeCost>& costs);

}  // namespace cnn::bench
