#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "allreduce/nccl/library.h"
#include "runtime/communicator.h"

namespace cnn::allreduce::nccl {

// What a rank has of the others.
struct Team {
  int rank = 0, ranks = 1;
  // Made by rank 0, see make_id(); all ranks have the same.
  UniqueId id;
  // Called over and over in a wait, and with false when it is over. Throws if a rank is lost.
  std::function<void(bool waiting)> look_around;
  // What CUDA calls a stream.
  void* (*native)(Stream& stream) = nullptr;
};

// Throws Error.
UniqueId make_id(const Library& library);

// Sums by NCCL on the device that the calling thread has chosen. Used by one thread at a time.
class Communicator final : public StreamCommunicator {
 public:
  // All ranks make theirs at the same time. Throws Error, and what look_around throws.
  Communicator(const Library& library, Team team);
  ~Communicator() override;  // no step runs any more
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  void prepare(std::size_t /*bucket*/, std::size_t /*elements*/) override {}
  // factor: 1, or one over the number of ranks.
  void all_reduce(Stream& stream, std::size_t bucket, std::span<const std::span<float>> pieces,
                  float factor) override;

  // Tells NCCL of memory in which sums will be, so that it need not copy; until what is returned is
  // gone. Null where NCCL does not offer that.
  std::shared_ptr<void> attach(std::span<std::byte> memory);

  // For who waits for the device, which waits for other ranks: as Team::look_around. Ends what runs
  // on the device before it throws.
  void look(bool waiting);

 private:
  void settle(Status status);  // blocks while it is under way
  void abort();
  [[noreturn]] void fail(Status status);

  Library library_;
  Team team_;
  Comm comm_ = nullptr;  // null: aborted
};

}  // namespace cnn::allreduce::nccl
