#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "allreduce/transport.h"

namespace cnn::allreduce {

// One round of an all-gather: a rank sends `count` parts, beginning with its own, and receives as
// many from another rank. Part numbers are modulo the number of ranks.
struct GatherRound {
  int to = 0, from = 0;
  int sends = 0, receives = 0;  // the first part of each
  int count = 0;
};
// Returns the rounds of the all-gather of Bruck et al. (1997): ceil(log2 ranks) rounds for any
// number of ranks. In each a rank sends to one other rank and receives from one.
std::vector<GatherRound> gather_rounds(int rank, int ranks);

// An all-gather of a few bytes of each rank, which can be repeated between reductions.
class RepeatedAllGather {
 public:
  // bytes: the part of each rank. All ranks construct theirs in the same order as their other
  // shared allocations. The transport must outlive it.
  RepeatedAllGather(Transport& transport, std::size_t bytes);

  // Returns the part of this rank, to be filled before run().
  Bytes mine() const { return of(transport_.rank()); }
  // Exchanges the parts. Blocks until all ranks have called it. Allocates nothing. Throws PeerLost.
  void run();
  // Returns the part of a rank as of the latest run().
  Bytes of(int rank) const {
    return buffer_.subspan(bytes_ * static_cast<std::size_t>(rank), bytes_);
  }

 private:
  struct Round {
    int to, from;
    std::vector<Bytes> sends, receives;  // contiguous parts of the buffer
  };
  std::vector<Bytes> extents(int first, int count) const;

  Transport& transport_;
  std::size_t bytes_;
  Bytes buffer_;  // by rank
  std::vector<Round> rounds_;
};

// A broadcast of large values from rank 0, along a binomial tree.
class Broadcast {
 public:
  // most: the bytes of one message. All ranks construct theirs as they do a RepeatedAllGather.
  explicit Broadcast(Transport& transport, std::size_t most = std::size_t{1} << 20U);

  // Replaces the values by those of rank 0. All ranks call it with equally many. Throws PeerLost.
  void run(Bytes values);

 private:
  void forward(std::size_t bytes);  // from the parent in the tree to the children

  Transport& transport_;
  Bytes buffer_;
};

}  // namespace cnn::allreduce
