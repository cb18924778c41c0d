#pragma once

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn {

// Follows the nodes of a step as an executor enqueues them.
class NodeObserver {
 public:
  virtual ~NodeObserver() = default;
  // A node's kernel has just been enqueued on the stream, which serves this lane. Work that the
  // observer enqueues there runs after the kernel and before the bytes of any operand are used for
  // something else. All calls come from the thread that runs the executor; operands live as long as
  // the executor.
  virtual void enqueued(NodeId node, const Operands& operands, Lane lane, Stream& stream) = 0;
};

}  // namespace cnn
