#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "allreduce/transport.h"

namespace cnn::allreduce {

// One round of an all-gather: a rank sends `count` parts, its own and those behind it, and receives
// as many from another rank. Parts are numbered round and round.
struct GatherRound {
  int to = 0, from = 0;
  int sends = 0, receives = 0;  // the first part of each
  int count = 0;
};
// The all-gather of Bruck et al. (1997): ceil(log2 ranks) rounds for any number of ranks, in each
// of which a rank has one other to send to and one to receive from.
std::vector<GatherRound> gather_rounds(int rank, int ranks);

// A few bytes that each rank tells all others, again and again, between reductions.
class Gathering {
 public:
  // bytes: that each rank gives. All ranks make theirs at the same place among their rooms. The
  // transport must outlive it.
  Gathering(Transport& transport, std::size_t bytes);

  Bytes mine() const { return of(transport_.rank()); }
  // Blocks until all ranks have called it: then of() has what each of them had in mine(). Allocates
  // nothing. Throws PeerLost.
  void run();
  Bytes of(int rank) const {
    return room_.subspan(bytes_ * static_cast<std::size_t>(rank), bytes_);
  }

 private:
  struct Round {
    int to, from;
    std::vector<Bytes> sends, receives;  // stretches of the room
  };
  std::vector<Bytes> stretches(int first, int count) const;

  Transport& transport_;
  std::size_t bytes_;
  Bytes room_;  // parts by rank
  std::vector<Round> rounds_;
};

// Large values that rank 0 has and all are to have.
class Broadcast {
 public:
  // most: bytes that travel at once. All ranks make theirs as they make a Gathering.
  explicit Broadcast(Transport& transport, std::size_t most = std::size_t{1} << 20U);

  // values become those of rank 0; as many on all ranks, at the same time. Throws PeerLost.
  void run(Bytes values);

 private:
  void pass_on(std::size_t bytes);  // of the room: from the rank before to those after

  Transport& transport_;
  Bytes room_;
};

}  // namespace cnn::allreduce
