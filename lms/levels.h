#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// The nodes of a graph by level: level 0 for nodes without predecessors, else one more than the
// highest level of a predecessor. TFLMS calls this the categorized topological sort and measures
// distances in levels. Both references must outlive it.
class Levels {
 public:
  Levels(const Graph& graph, const Schedule& schedule);

  std::size_t count() const { return at_.size(); }
  std::size_t of(NodeId node) const { return level_[index_of(node)]; }
  std::span<const NodeId> at(std::size_t level) const { return at_[level]; }
  // Returns the nodes that read this node's outputs, ascending, each once.
  std::span<const NodeId> readers(NodeId node) const { return readers_[index_of(node)]; }
  std::size_t edges() const;  // between nodes and their readers
  // Returns whether `to` depends, directly or not, on an output of `from`.
  bool reaches(NodeId from, NodeId to) const;

  StepId step(NodeId node) const { return step_[index_of(node)]; }
  NodeId node(StepId step) const;  // of this compute step

 private:
  using Set = std::vector<std::uint64_t>;  // of nodes, one bit each

  void add(NodeId node);

  const Graph& graph_;
  const Schedule& schedule_;
  std::vector<std::size_t> level_;            // by NodeId
  std::vector<std::vector<NodeId>> at_;       // by level
  std::vector<std::vector<NodeId>> readers_;  // by NodeId
  std::vector<Set> needs_;                    // by NodeId: all nodes that reach it
  std::vector<StepId> step_;                  // by NodeId
};

// Return the names of an op and a tensor in TFLMS's logs: the op and the number of the output.
std::string op_text(const Graph& graph, NodeId node);
std::string tensor_text(const Graph& graph, TensorId tensor);

}  // namespace cnn::lms
