#pragma once

#include <algorithm>
#include <bit>

// How algorithms for powers of two take in any number of ranks.
namespace cnn::allreduce {

// The first 2 extra ones of n ranks fold in pairs, so that a power of two of them remains.
struct Folding {
  int power = 1, extra = 0;

  explicit Folding(int ranks)
      : power(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
        extra(ranks - power) {}
  // The even one of a pair goes on.
  bool in_pair(int rank) const { return rank < 2 * extra; }
  bool goes_on(int rank) const { return !in_pair(rank) || rank % 2 == 0; }
  // Among those that go on, and back.
  int index(int rank) const { return in_pair(rank) ? rank / 2 : rank - extra; }
  int rank(int index) const { return index < extra ? 2 * index : index + extra; }
};

}  // namespace cnn::allreduce
