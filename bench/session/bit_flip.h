#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/flags/fault_spec.h"
#include "bench/session/written_tensors.h"
#include "runtime/device.h"
#include "runtime/node_observer.h"

namespace cnn::bench {

// The injected fault --comm_fault=what=flip: flips one bit of the first element of a tensor right
// after the tensor was computed, before any node reads it.
class BitFlip final : public NodeObserver {
 public:
  // Throws Error if the fault names a tensor that the step does not write.
  BitFlip(const FaultSpec& fault, const WrittenTensors& tensors, Device& device);

  void begin(std::int64_t step) { due_ = step == step_; }
  void enqueued(NodeId node, const Operands& operands, Lane lane, Stream& stream) override;

 private:
  std::int64_t step_ = 0;
  WrittenTensor tensor_;
  bool due_ = false;
  Buffer byte_;  // on the host: staging for the tensor's first byte
};

}  // namespace cnn::bench
