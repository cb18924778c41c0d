#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/machine/backend.h"
#include "runtime/program.h"

namespace cnn::bench {

// The cost of a node on a device with given ceilings.
struct NodeCost {
  double flops = 0;
  double bytes = 0;  // reads plus writes
  double seconds = 0;
};

// Returns floating-point operations of a node: of the kernel's algorithm, or as the op counts them.
double needed_flops(const Graph& graph, const Node& node, const KernelSpec* spec = nullptr);

// Returns the bytes of a node's operands, each moved once. Operands that the node updates in place
// count twice; parts of a concat or split that already lie in place count zero.
double operand_bytes(const Graph& graph, const Node& node);

// Returns the bytes that every algorithm must read again, see Op::reread_bytes.
double reread_bytes(const Graph& graph, const Node& node);

// Returns the costs by NodeId: bytes = operand_bytes + reread_bytes + extra_traffic of the kernel's
// spec, seconds = max(flops / peak, bytes / bandwidth). Without specs, assumes single-pass kernels.
// Throws Error if there are specs, but not one per node.
std::vector<NodeCost> node_costs(const Graph& graph, const Ceilings& ceilings,
                                 std::span<const KernelSpec> specs = {});

// The total cost of all nodes of one op.
struct OpCost {
  std::string op;
  std::size_t nodes = 0;
  NodeCost cost;
};
// Returns the costs of each op, the largest seconds first.
std::vector<OpCost> costs_by_op(const Graph& graph, const std::vector<NodeCost>& costs);

}  // namespace cnn::bench
