#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allreduce/progress.h"

// The data that ranks which share memory write for one another, at the front of it.
namespace cnn::allreduce {

enum class State : std::uint32_t { absent, here, left, failed };

// A barrier's counter, or bits of messages that are under way.
using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free);

// One line for each rank, so that who waits can tell why.
struct alignas(64) Presence {
  std::atomic<State> state{State::absent};
  std::atomic<std::int32_t> process{0};     // 0: a thread of this one
  std::atomic<std::int32_t> waits_for{-1};  // rank, while it waits
  std::atomic<std::int32_t> culprit{-1};    // its number, if it failed because of another
  Progress progress{0};
};

// Wakes a rank that sleeps until another has done something.
struct alignas(64) Doorbell {
  std::atomic<std::uint32_t> rings{0};  // so far
  std::atomic<std::uint32_t> sleeps{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

struct alignas(64) Dimensions {
  std::uint64_t ranks = 0, channels = 0, room = 0, patience_ms = 0, silence_ms = 0;
};

// Where things lie. Each rank has a line for its state, one for its doorbell, and a word for each
// channel that counts its arrivals at barriers: 640 bytes with 64 channels. A message that is under
// way is one bit, for any two ranks and each channel: that is all that n ranks need which may all
// talk to all, 8 bytes for each pair of ranks and 64 channels, and the one size that grows with
// pairs. Up to 16 ranks have a line for each of these words, so that two who write do not wait for
// one another.
class Board {
 public:
  explicit Board(std::byte* memory) : memory_(memory) {}

  static std::size_t front(const Dimensions& of);  // bytes before the rooms
  static std::size_t bytes(const Dimensions& of);  // with the rooms of all ranks
  void build(const Dimensions& of);                // in memory that is zero

  const Dimensions& dimensions() const { return *reinterpret_cast<const Dimensions*>(memory_); }
  Presence& presence(std::size_t rank) const;
  Doorbell& doorbell(std::size_t rank) const;
  Word& arrivals(std::size_t channel, std::size_t rank) const;  // at barriers
  // The channels on which a message has been sent and not been received yet, a bit each: 64 of
  // them, with this channel's among them.
  Word& under_way(std::size_t channel, std::size_t from, std::size_t to) const;
  static std::uint64_t bit(std::size_t channel) { return std::uint64_t{1} << channel % 64; }
  std::byte* room(std::size_t rank) const;

 private:
  std::byte* counters() const;

  std::byte* memory_;
};

}  // namespace cnn::allreduce
