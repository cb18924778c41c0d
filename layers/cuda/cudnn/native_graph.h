#pragma once

#include <vector>

#include "layers/cuda/cudnn/target.h"
#include "layers/cuda/operation_graph.h"

namespace cnn::layers::cuda {

// A graph of operations as cuDNN has it. Needs no device.
class NativeGraph {
 public:
  // The target must outlive this. Throws Error if cuDNN does not take the graph.
  NativeGraph(const OperationGraph& graph, const Target& target);

  const Descriptor& native() const { return graph_; }
  const Target& target() const { return target_; }
  const OperationGraph& operations() const { return source_; }

 private:
  OperationGraph source_;
  const Target& target_;
  std::vector<Descriptor> parts_;  // what the graph refers to
  Descriptor graph_;
};

}  // namespace cnn::layers::cuda
