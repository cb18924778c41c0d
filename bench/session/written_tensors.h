#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::bench {

// A tensor that a node of a step writes: one of its outputs, or an operand that it changes in
// place.
struct WrittenTensor {
  NodeId node{};
  bool in_place = false;
  std::size_t operand = 0;  // its place among the node's outputs, or inputs if in_place
  std::size_t output = 0;   // its number: outputs first, then what is changed in place
  std::string node_name;    // "conv#15", as --print_plan has it
  std::string op;
  std::string name;   // "conv#15:0"; a variable has its own name
  std::string layer;  // the first parameter of the node; empty for a variable, or if there is none
  TensorDesc desc;
  // The same for the same value in another plan of the network: it depends on how the value is
  // computed, not on layouts, on the order of nodes or on how often they run.
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
  // Those of a node are [begin(node), end(node)) of all().
  std::size_t begin(NodeId node) const { return first_[index_of(node)]; }
  std::size_t end(NodeId node) const { return first_[index_of(node) + 1]; }
  // Finds a tensor by its name, or a node's output 0 by the node's. Throws Error if there is none.
  std::size_t find(const std::string& name) const;

 private:
  std::vector<WrittenTensor> tensors_;
  std::vector<std::size_t> first_;  // by NodeId, then one more
};

}  // namespace cnn::bench
