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

// Which chunks of a rank's list may run at the same time.
class ChunkOrder {
 public:
  explicit ChunkOrder(const RankPlan& plan);  // throws Error if a chunk waits for a later one
  bool ordered(std::size_t a, std::size_t b) const {
    return a == b || before_[std::max(a, b)][std::min(a, b)];
  }

 private:
  std::vector<std::vector<bool>> before_;  // [later][earlier]
};

// Throws Error where two chunks of a rank that may run at the same time touch the same element of
// the own buffer or the scratch, one of them writing; or where ranks touch one another's memory in
// different chunks.
void check_chunks_apart(std::span<const RankPlan> plans);

// Finds memory that one rank touches while another writes it, by vector clocks: the ranks of one
// chunk are threads whose order only barriers and messages make.
class RaceDetector {
 public:
  using Clock = std::vector<std::uint32_t>;

  RaceDetector(std::size_t ranks, std::size_t chunks);

  struct Place {
    std::size_t chunk, owner, piece;  // piece: of that rank's buffer
    auto operator<=>(const Place&) const = default;
  };
  // Throws Error if another rank's access is not ordered with this one.
  void access(const Place& place, std::size_t rank, bool writes);

  // Returns what other ranks learn where they meet this one or receive from it.
  const Clock& clock(std::size_t chunk, std::size_t rank) const { return clocks_[chunk][rank]; }
  void join(std::size_t chunk, std::size_t rank, const Clock& other);
  // Later accesses of this rank are not those which others have learned of.
  void tick(std::size_t chunk, std::size_t rank) { ++clocks_[chunk][rank][rank]; }

 private:
  struct History {
    std::optional<std::pair<std::size_t, std::uint32_t>> write;  // rank, its clock
    Clock reads;                                                 // by rank
  };
  std::vector<std::vector<Clock>> clocks_;  // [chunk][rank]
  std::map<Place, History> histories_;
};

}  // namespace cnn::allreduce
