#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "bench/machine/backend.h"
#include "bench/session/written_tensors.h"
#include "runtime/node_observer.h"
#include "runtime/program.h"
#include "runtime/tensor_hash.h"

namespace cnn::bench {

struct TensorHash {
  std::size_t tensor = 0;  // index in WrittenTensors::all()
  std::uint64_t hash = 0;
  bool operator==(const TensorHash&) const = default;
};

// Hashes every tensor that a step writes, right after the node that writes it and on that node's
// lane, so that no later node can have changed it. Tensors in device memory that the host cannot
// see are copied to the host. The backend's kernels unpack packed weights; without such a kernel,
// the hash covers the packed bytes.
class TensorHashes final : public NodeObserver {
 public:
  // plan: of the step, or any other plan of its graph. The backend must outlive it.
  TensorHashes(const StepPlan& plan, const Backend& backend);
  ~TensorHashes() override;

  // Call before each step: drops earlier hashes. wanted: hashes this step.
  void begin(bool wanted);
  void enqueued(NodeId node, const Operands& operands, Lane lane, Stream& stream) override;

  const WrittenTensors& tensors() const { return tensors_; }
  // Returns WrittenTensor::key, combined with the packing if the hash covers packed bytes.
  std::uint64_t key_of(std::size_t tensor) const;
  // Returns hashes of the latest step, in the order in which nodes were enqueued; nothing if it was
  // not wanted. A recomputed node contributes its tensors again.
  std::vector<TensorHash> hashes() const;
  // Returns one hash of all hashes in their order.
  std::uint64_t combined() const;

 private:
  // Converts packed weights to plain layout.
  struct Unpacker {
    TensorDesc packed, plain;
    std::size_t workspace = 0;
    std::array<std::unique_ptr<Kernel>, lane_count> kernels;  // null: no such tensor on that lane
  };
  // Memory that the work on one lane reuses.
  struct Scratch {
    Buffer unpacked;  // on the device: a plain tensor, then a workspace
    Buffer copied;    // on the host
  };
  // One tensor of the current step.
  struct Work {
    std::size_t tensor = 0;
    TensorView view;
    Operands unpacking;
    bool parallel = false;
    std::uint64_t hash = 0;
  };

  void add_unpacker(const WrittenTensor& tensor, Lane lane);
  Unpacker* unpacker_for(const TensorDesc& packed);
  void unpack(Work& work, Unpacker& unpacker, Lane lane, Stream& stream);
  void compute(Work& work) const;

  const Backend& backend_;
  WrittenTensors tensors_;
  HashKeys keys_;
  std::vector<Unpacker> unpackers_;
  std::array<Scratch, lane_count> scratch_;
  bool wanted_ = false;
  std::deque<Work> work_;  // streams hold references to elements while more are added
};

}  // namespace cnn::bench
