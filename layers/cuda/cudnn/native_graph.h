#pragma once

#include <vector>

#include "layers/cuda/cudnn/target.h"
#include "layers/cuda/operation_graph.h"

namespace cnn::layers::cuda {

// A cuDNN backend operation graph, built from an OperationGraph. It needs no device.
class NativeGraph {
 public:
  // The target must outlive the graph. Throws Error if cuDNN rejects the graph.
  NativeGraph(const OperationGraph& graph, const Target& target);

  const Descriptor& native() const { return graph_; }
  const Target& target() const { return target_; }
  const OperationGraph& operations() const { return source_; }

 private:
  OperationGraph source_;
  const Target& target_;
  std::vector<Descriptor> parts_;  // the descriptors that graph_ references
  Descriptor graph_;
};

}  // namespace cnn::layers::cuda
