#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allreduce/nccl/library.h"
#include "runtime/communicator.h"
#include "runtime/device.h"

namespace cnn::allreduce::nccl {

// The parameters of a rank's communicator.
struct Team {
  int rank = 0, ranks = 1;
  // Made by rank 0, see make_id(); equal on all ranks.
  UniqueId id;
  // Called repeatedly with true during a wait, and once with false at its end. Throws if a rank is
  // lost.
  std::function<void(bool waiting)> check_peers;
  // Returns the cudaStream_t of a stream.
  void* (*native)(Stream& stream) = nullptr;
};

// Returns a new id. Throws Error.
UniqueId make_id(const Library& library);

// An all-reduce by NCCL on the current device of the calling thread. One thread at a time may use
// it.
//
// The abort of NCCL first ends the kernels that wait for other ranks, then blocks until the caller
// has destroyed every CUDA graph with a captured all-reduce and ended a running capture. The caller
// learns of a lost rank by an exception, so a separate thread calls the abort. Until the abort has
// ended, NCCL may launch on its streams and access its memory: the communicator shares their
// ownership until then.
class Communicator final : public StreamCommunicator {
 public:
  // All ranks construct theirs at the same time. Throws Error, and the exceptions of check_peers.
  Communicator(const Library& library, Team team);
  // Requires that no step runs and that all recordings of steps are destroyed.
  ~Communicator() override;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  void prepare(std::size_t /*bucket*/, std::size_t /*elements*/) override {}
  void all_reduce(Stream& stream, std::size_t bucket, std::span<const std::span<float>> pieces,
                  float factor) override;

  // Declares memory for buckets: an abort keeps the memory alive until it has ended.
  void share(const std::shared_ptr<Buffer>& memory);
  // Calls share() and registers the memory with NCCL, so that NCCL need not copy, until the
  // returned owner is destroyed. Null if NCCL lacks the function.
  std::shared_ptr<void> attach(const std::shared_ptr<Buffer>& memory);

  // The poll callback of waits for the device, like Team::check_peers. Ends the kernels on the
  // device before it throws.
  void poll(bool waiting);

 private:
  class Abort;

  int operation_for(float factor);  // pre-multiplies by the factor and sums
  void keep_in_abort(const std::shared_ptr<void>& used);
  void settle(Status status);  // blocks while the call is in progress
  // Aborts unless it has done so before, and does not wait for the end of the abort. why: the
  // failure that later calls of all_reduce() tell.
  void abort(std::string_view why);
  [[noreturn]] void fail(Status status);

  Library library_;
  Team team_;
  Comm comm_ = nullptr;                            // null: aborted
  std::string failure_;                            // why it was aborted
  std::map<float, int> operations_;                // by factor
  std::vector<std::weak_ptr<void>> used_by_nccl_;  // streams and memory
  std::unique_ptr<Abort> abort_;
};

}  // namespace cnn::allreduce::nccl
