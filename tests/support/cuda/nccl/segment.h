#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nccl.h>
#include <string>

// Memory that the ranks of an emulated communicator share, whether they are threads or processes.
namespace cnn::tests::emulated {

// The arguments of a reduction that must be equal on all ranks.
struct ReductionArguments {
  std::uint64_t elements = 0;
  int type = 0;
  int operation = 0;
  int captured = 0;  // 1: a graph replays it
  bool operator==(const ReductionArguments&) const = default;
};

// A file in memory that lives as long as a process has it open. The unique ID of a communicator
// names it by its process and descriptor, so that nothing is left behind when ranks are killed.
class Segment {
 public:
  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10U;
  static constexpr int max_ranks = 64;

  struct Slot {
    std::atomic<int> joined = 0;
    std::atomic<int> failed = 0;              // its start has failed
    std::atomic<int> device = 0;              // counted from 1, since a new file holds zeros
    std::atomic<std::uint64_t> barriers = 0;  // that this rank has reached
    ReductionArguments arguments;
  };

  static ncclUniqueId create();
  // Throws Error if the ID names no segment.
  Segment(const ncclUniqueId& id, int ranks);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // The number of ranks by which the segment was joined first.
  int agree_on_ranks(int ranks);
  Slot& slot(int rank);
  std::byte* chunk(int rank);  // chunk_bytes bytes

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
