#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "allreduce/step_list.h"

namespace cnn::allreduce {

// The order of the chunks of a rank's list: which of them may run concurrently.
class ChunkOrder {
 public:
  explicit ChunkOrder(const RankPlan& plan);  // throws Error if a chunk waits for a later one
  bool ordered(std::size_t a, std::size_t b) const {
    return a == b || before_[std::max(a, b)][std::min(a, b)];
  }

 private:
  std::vector<std::vector<bool>> before_;  // indexed by [later][earlier]
};

// Throws Error if two chunks that may run concurrently conflict. Two chunks of one rank conflict if
// both touch an element of its buffer or scratch and one writes it. Chunks of different ranks must
// not touch each other's memory at all.
void check_chunks_apart(std::span<const RankPlan> plans);

// Detects races between ranks by vector clocks. The ranks of one chunk are threads that only
// barriers and messages order.
class RaceDetector {
 public:
  using Clock = std::vector<std::uint32_t>;

  RaceDetector(std::size_t ranks, std::size_t chunks);

  struct Place {
    std::size_t chunk, owner, piece;  // piece is that of the owner's buffer
    auto operator<=>(const Place&) const = default;
  };
  // Throws Error if an unordered access of another rank conflicts with this one.
  void access(const Place& place, std::size_t rank, bool writes);

  // Returns the vector clock that other ranks join at a barrier or when they receive a message.
  const Clock& clock(std::size_t chunk, std::size_t rank) const { return clocks_[chunk][rank]; }
  void join(std::size_t chunk, std::size_t rank, const Clock& other);
  // Starts a new epoch of this rank, which other ranks have not yet joined.
  void tick(std::size_t chunk, std::size_t rank) { ++clocks_[chunk][rank][rank]; }

 private:
  struct History {
    std::optional<std::pair<std::size_t, std::uint32_t>> write;  // the rank and its clock
    Clock reads;  // clock of the last read by each rank
  };
  std::vector<std::vector<Clock>> clocks_;  // indexed by [chunk][rank]
  std::map<Place, History> histories_;
};

}  // namespace cnn::allreduce
