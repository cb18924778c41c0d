#pragma once

#include <algorithm>
#include <bit>

// Extends algorithms for powers of two to any number of ranks, as MPICH does (Thakur et al., 2005).
namespace cnn::allreduce {

// The first 2 * extra ranks fold in pairs, so that a power of two of ranks goes on.
struct Folding {
  int power = 1, extra = 0;

  explicit Folding(int ranks)
      : power(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
        extra(ranks - power) {}
  // Return whether the rank is in a pair, and whether it goes on: the even rank of a pair does.
  bool in_pair(int rank) const { return rank < 2 * extra; }
  bool goes_on(int rank) const { return !in_pair(rank) || rank % 2 == 0; }
  // Converts between the rank and its index among the ranks that go on.
  int index(int rank) const { return in_pair(rank) ? rank / 2 : rank - extra; }
  int rank(int index) const { return index < extra ? 2 * index : index + extra; }
};

}  // namespace cnn::allreduce
