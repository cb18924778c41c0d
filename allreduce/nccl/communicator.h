#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "allreduce/nccl/library.h"
#include "runtime/communicator.h"
#include "runtime/device.h"

namespace cnn::allreduce::nccl {

// The team of a rank.
struct Team {
  int rank = 0, ranks = 1;
  // Made by rank 0, see make_id(); all ranks have the same.
  UniqueId id;
  // Called over and over in a wait, and with false when it is over. Throws if a rank is lost.
  std::function<void(bool waiting)> check_peers;
  // Returns what CUDA calls a stream.
  void* (*native)(Stream& stream) = nullptr;
};

// Throws Error.
UniqueId make_id(const Library& library);

// Sums by NCCL on the device that the calling thread has chosen. Used by one thread at a time.
//
// NCCL's abort first ends the kernels that wait for other ranks, then blocks until every CUDA graph
// that has captured a sum is destroyed, and a capture under way has ended: that is up to the
// caller, who learns of a lost rank by an exception. So a thread of its own calls it. Until the
// abort has ended, NCCL may launch on streams and use memory that it knows of: the communicator
// shares their ownership for so long.
class Communicator final : public StreamCommunicator {
 public:
  // All ranks make theirs at the same time. Throws Error, and what check_peers throws.
  Communicator(const Library& library, Team team);
  // No step runs any more, and what has recorded one is gone.
  ~Communicator() override;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  void prepare(std::size_t /*bucket*/, std::size_t /*elements*/) override {}
  void all_reduce(Stream& stream, std::size_t bucket, std::span<const std::span<float>> pieces,
                  float factor) override;

  // Sums will be in this memory: an abort keeps it until it has ended.
  void share(const std::shared_ptr<Buffer>& memory);
  // The same, and tells NCCL of the memory, so that it need not copy, until what is returned is
  // gone. Null where NCCL does not offer that.
  std::shared_ptr<void> attach(const std::shared_ptr<Buffer>& memory);

  // For who waits for the device, which waits for other ranks: as Team::check_peers. Ends what runs
  // on the device before it throws.
  void look(bool waiting);

 private:
  class Abort;

  int operation_for(float factor);  // that multiplies by it and sums
  void keep_in_abort(const std::shared_ptr<void>& used);
  void settle(Status status);  // blocks while it is under way
  void abort();                // does not wait for its end
  [[noreturn]] void fail(Status status);

  Library library_;
  Team team_;
  Comm comm_ = nullptr;                            // null: aborted
  std::map<float, int> operations_;                // by factor
  std::vector<std::weak_ptr<void>> used_by_nccl_;  // streams and memory
  std::unique_ptr<Abort> abort_;
};

}  // namespace cnn::allreduce::nccl
