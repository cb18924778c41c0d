#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::bench {

// A tensor that a node of a step writes: an output, or an operand changed in place.
struct WrittenTensor {
  NodeId node{};
  bool in_place = false;
  std::size_t operand = 0;  // index among the node's outputs, or inputs if in_place
  std::size_t output = 0;   // number within the node: outputs first, then operands changed in place
  std::string node_name;    // "conv#15", as in --print_plan
  std::string op;
  std::string name;   // "conv#15:0"; a variable has its name
  std::string layer;  // the node's first parameter; empty for a variable, or without parameters
  TensorDesc desc;
  // Identifies the value across plans of the network: it depends on the computation of the value,
  // not on layouts, the order of nodes or recomputation.
  std::uint64_t key = 0;

  const TensorView& view(const Operands& operands) const {
    return in_place ? operands.in[operand] : operands.out[operand];
  }
};

// All tensors that the nodes of a graph write, node by node.
class WrittenTensors {
 public:
  explicit WrittenTensors(const Graph& graph);

  const std::vector<WrittenTensor>& all() const { return tensors_; }
  // Return the range [begin(node), end(node)) of all() that a node writes.
  std::size_t begin(NodeId node) const { return first_[index_of(node)]; }
  std::size_t end(NodeId node) const { return first_[index_of(node) + 1]; }
  // Finds a tensor by its name, or output 0 of a node by the node's name. Throws Error if there is
  // none.
  std::size_t find(const std::string& name) const;

 private:
  std::vector<WrittenTensor> tensors_;
  std::vector<std::size_t> first_;  // by NodeId, then one more
};

}  // namespace cnn::bench
