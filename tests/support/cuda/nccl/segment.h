#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nccl.h>
#include <string>

// Memory shared by the ranks of an emulated communicator, which are threads or processes.
namespace cnn::tests::emulated {

// The arguments of a reduction, which must be equal on all ranks.
struct ReductionArguments {
  std::uint64_t elements = 0;
  int type = 0;
  int operation = 0;
  int captured = 0;  // 1 if a graph replays the reduction
  bool operator==(const ReductionArguments&) const = default;
};

// A file in memory that lives as long as a process has it open. A communicator's unique ID names it
// by process and descriptor, so killed ranks leave nothing behind.
class Segment {
 public:
  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10U;
  static constexpr int max_ranks = 64;

  struct Slot {
    std::atomic<int> joined = 0;
    std::atomic<int> failed = 0;              // its start failed
    std::atomic<int> device = 0;              // counted from 1, because a new file holds zeros
    std::atomic<std::uint64_t> barriers = 0;  // number of barriers that this rank has reached
    ReductionArguments arguments;
  };

  static ncclUniqueId create();
  // Throws Error if the ID names no segment.
  Segment(const ncclUniqueId& id, int ranks);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // Returns the number of ranks with which the first rank joined.
  int agree_on_ranks(int ranks);
  Slot& slot(int rank);
  std::byte* chunk(int rank);  // has chunk_bytes bytes

 private:
  struct Header {
    std::atomic<int> ranks = 0;
    std::array<Slot, max_ranks> slots;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace cnn::tests::emulated
