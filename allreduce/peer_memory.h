#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include "allreduce/transport.h"

namespace cnn::allreduce {

struct PeerMemoryOptions {
  std::size_t room = std::size_t{1} << 30U;  // bytes of each rank; memory is taken where it is used
  std::size_t channels = 64;
  std::chrono::milliseconds patience{
      300'000};                               // of one wait: a step of the slowest rank is shorter
  std::chrono::milliseconds silence{10'000};  // of a process that is stopped, as by SIGSTOP
};

// Memory in which ranks of one host see one another: threads of a process, or processes that have
// mapped the same anonymous file. It is gone with the last of them, however they end.
class PeerMemory {
 public:
  // For threads, all of which use this object.
  static PeerMemory of_threads(int ranks, const PeerMemoryOptions& options);
  // For processes: made by one of them, opened by the others by a descriptor that they inherit or
  // open under /proc/<process>/fd. Throws Error if the system has no memory for it.
  static PeerMemory create(int ranks, const PeerMemoryOptions& options);
  static PeerMemory open(int descriptor);

  PeerMemory(PeerMemory&& other) noexcept;
  PeerMemory& operator=(PeerMemory&&) = delete;
  ~PeerMemory();

  int descriptor() const { return descriptor_; }  // -1: of threads
  // Blocks until all ranks have joined. Every rank joins once; a transport that is destroyed
  // leaves, and who waits for it then is told. Throws PeerLost if one does not come in time.
  // called: the numbers that messages give the ranks, where these are some of a larger run's.
  std::unique_ptr<Transport> join(int rank, std::span<const int> called = {});

 private:
  PeerMemory(int descriptor, std::byte* memory, std::size_t bytes)
      : descriptor_(descriptor), memory_(memory), bytes_(bytes) {}

  int descriptor_;
  std::byte* memory_;
  std::size_t bytes_;
};

}  // namespace cnn::allreduce
