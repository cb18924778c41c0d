#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allreduce/progress.h"

// The control block at the front of the memory that ranks of one host share: their states,
// doorbells, barrier counters and message flags. The shared segments of the ranks follow it.
namespace cnn::allreduce {

enum class RankState : std::uint32_t { absent, joined, left, failed };

// A barrier's arrival counter, or a set of flags, one for each of 64 channels.
using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free);

// The state of one rank, in a cache line of its own. Ranks that wait read it to find out why.
struct alignas(64) RankStatus {
  std::atomic<RankState> state{RankState::absent};
  std::atomic<std::int32_t> process{0};     // its process id; 0: it is a thread of this process
  std::atomic<std::int32_t> waits_for{-1};  // the rank that it waits for; -1: none
  std::atomic<std::int32_t> culprit{-1};    // the rank because of which it has failed; -1: none
  Progress progress{0};
};

// The futex on which a rank sleeps until a peer has done something for it.
struct alignas(64) Doorbell {
  std::atomic<std::uint32_t> rings{0};  // The futex word: how often peers have rung so far.
  std::atomic<std::uint32_t> sleeping{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// The parameters that all ranks of the shared memory have in common.
struct alignas(64) SharedParameters {
  std::uint64_t ranks = 0, channels = 0, segment_bytes = 0, wait_timeout_ms = 0,
                heartbeat_timeout_ms = 0;
};

// A view of the control block and the segments behind it. It does not own the memory.
//
// Each rank has a line for its status, one for its doorbell, and one arrival counter per channel:
// 640 bytes with 64 channels. A message under way is one bit for each pair of ranks and each
// channel, 8 bytes per pair and 64 channels, which alone grows with the square of the ranks. With
// up to 16 ranks each of these words has a cache line of its own, which avoids false sharing.
class SharedHeader {
 public:
  explicit SharedHeader(std::byte* memory) : memory_(memory) {}

  static std::size_t header_bytes(const SharedParameters& parameters);  // bytes before the segments
  static std::size_t total_bytes(const SharedParameters& parameters);   // header and segments
  // Constructs the header in memory that is zero.
  void construct(const SharedParameters& parameters);

  const SharedParameters& parameters() const {
    return *reinterpret_cast<const SharedParameters*>(memory_);
  }
  RankStatus& status(std::size_t rank) const;
  Doorbell& doorbell(std::size_t rank) const;
  // Returns the number of barriers at which the rank has arrived on this channel.
  Word& arrivals(std::size_t channel, std::size_t rank) const;
  // Returns the flags of the messages from one rank to another that were sent and not yet received:
  // bit(channel) for each of the 64 channels among which this one is.
  Word& pending(std::size_t channel, std::size_t from, std::size_t to) const;
  static std::uint64_t bit(std::size_t channel) { return std::uint64_t{1} << channel % 64; }
  // Returns the start of the shared segment of a rank.
  std::byte* segment(std::size_t rank) const;

 private:
  std::byte* counters() const;

  std::byte* memory_;
};

}  // namespace cnn::allreduce
