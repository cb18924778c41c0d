#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include "allreduce/transport.h"

namespace cnn::allreduce {

struct SharedMemoryOptions {
  std::size_t segment_bytes = std::size_t{1} << 30U;  // per rank; pages are taken at first use
  std::size_t channels = 64;
  // The longest wait for a rank: longer than the longest step of the slowest rank.
  std::chrono::milliseconds wait_timeout{300'000};
  // How long the process of a rank may be stopped, as by SIGSTOP, before the rank counts as lost.
  std::chrono::milliseconds heartbeat_timeout{10'000};
};

// Memory that the ranks of one host share, which are threads of one process, or processes that map
// the same anonymous file (memfd). The system frees it with the last of them, however they end.
class SharedMemory {
 public:
  // Makes memory for ranks that are threads and all use this object.
  static SharedMemory for_threads(int ranks, const SharedMemoryOptions& options);
  // Makes memory for ranks that are processes. One of them creates it; the others open it by a file
  // descriptor that they inherit or open under /proc/<process>/fd. Throws Error if the system has
  // no memory for it. open() takes ownership of the descriptor.
  static SharedMemory create(int ranks, const SharedMemoryOptions& options);
  static SharedMemory open(int descriptor);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  int descriptor() const { return descriptor_; }  // -1: the ranks are threads
  // Returns the transport of a rank, which must not outlive the memory. Blocks until all ranks have
  // joined; each joins once. Destroying the transport tells peers that wait for the rank that it
  // has left. global_ranks: the number of each of these ranks in a larger run, which error messages
  // use; empty: the same. Throws PeerLost if a rank does not join in time.
  std::unique_ptr<Transport> join(int rank, std::span<const int> global_ranks = {});

 private:
  SharedMemory(int descriptor, std::byte* memory, std::size_t bytes)
      : descriptor_(descriptor), memory_(memory), bytes_(bytes) {}

  int descriptor_;
  std::byte* memory_;
  std::size_t bytes_;
};

}  // namespace cnn::allreduce
