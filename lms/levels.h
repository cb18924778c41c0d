#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// The nodes of a graph in layers: level 0 of those that need no other node, else one more than the
// highest level of what they read. TFLMS, which calls it the categorized topological sort, measures
// distances in it. Both references must outlive it.
class Levels {
 public:
  Levels(const Graph& graph, const Schedule& schedule);

  std::size_t count() const { return at_.size(); }
  std::size_t of(NodeId node) const { return level_[index_of(node)]; }
  std::span<const NodeId> at(std::size_t level) const { return at_[level]; }
  // The nodes that read what this one makes, ascending, each once.
  std::span<const NodeId> readers(NodeId node) const { return readers_[index_of(node)]; }
  std::size_t edges() const;  // of nodes to their readers
  // Whether `to` needs, directly or not, what `from` makes.
  bool reaches(NodeId from, NodeId to) const;

  StepId step(NodeId node) const { return step_[index_of(node)]; }
  NodeId node(StepId step) const;  // that this compute step runs

 private:
  using Set = std::vector<std::uint64_t>;  // of nodes, a bit for each

  void add(NodeId node);

  const Graph& graph_;
  const Schedule& schedule_;
  std::vector<std::size_t> level_;            // by NodeId
  std::vector<std::vector<NodeId>> at_;       // by level
  std::vector<std::vector<NodeId>> readers_;  // by NodeId
  std::vector<Set> needs_;                    // by NodeId: every node that reaches it
  std::vector<StepId> step_;                  // by NodeId
};

// As the logs of TFLMS name an op, and a tensor: by the op and the number of the output.
std::string op_text(const Graph& graph, NodeId node);
std::string tensor_text(const Graph& graph, TensorId tensor);

}  // namespace cnn::lms
