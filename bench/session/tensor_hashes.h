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
  std::size_t tensor = 0;  // place in WrittenTensors::all()
  std::uint64_t hash = 0;
  bool operator==(const TensorHash&) const = default;
};

// Hashes every tensor that a step writes, right after the node that writes it: on the lane of that
// node, so that no later node can have changed it. A device that the host does not see has its
// tensors copied to the host. Packed weights are unpacked by the backend's own kernels; where it
// has none for that, their bytes are hashed as they lie.
class TensorHashes final : public NodeObserver {
 public:
  // plan: of the step, or any other plan of its graph. The backend must outlive it.
  TensorHashes(const StepPlan& plan, const Backend& backend);
  ~TensorHashes() override;

  // Before each step: forgets the one before. wanted: hashes this one.
  void begin(bool wanted);
  void enqueued(NodeId node, const Operands& operands, Lane lane, Stream& stream) override;

  const WrittenTensors& tensors() const { return tensors_; }
  // WrittenTensor::key; with the packing in it where hashes are of packed bytes.
  std::uint64_t key_of(std::size_t tensor) const;
  // Hashes of the latest step, in the order in which nodes were enqueued; nothing if it was not
  // wanted. A node that ran again has its tensors here again.
  std::vector<TensorHash> hashes() const;
  // One hash of all of them in their order.
  std::uint64_t combined() const;

 private:
  // Makes packed weights plain.
  struct Unpacker {
    TensorDesc packed, plain;
    std::size_t workspace = 0;
    std::array<std::unique_ptr<Kernel>, lane_count> kernels;  // null: no such tensor on that lane
  };
  // Memory that the work on one lane uses, one piece after another.
  struct Scratch {
    Buffer unpacked;  // on the device: a plain tensor, then a workspace
    Buffer copied;    // on the host
  };
  // One tensor of the step that runs.
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
  std::deque<Work> work_;  // streams refer to elements while more are added
};

}  // namespace cnn::bench
