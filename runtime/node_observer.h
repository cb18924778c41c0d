#pragma once

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn {

// Callback for each node that an executor enqueues.
class NodeObserver {
 public:
  virtual ~NodeObserver() = default;
  // Called right after a node's kernel is enqueued on the stream, which serves this lane. Work that
  // the observer enqueues there runs after the kernel and before the plan reuses the bytes of any
  // operand. All calls come from the executor's thread; operands live as long as the executor.
  virtual void enqueued(NodeId node, const Operands& operands, Lane lane, Stream& stream) = 0;
};

}  // namespace cnn
