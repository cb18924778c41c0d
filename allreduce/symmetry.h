#pragma once

#include <optional>
#include <vector>

#include "allreduce/algorithm.h"

namespace cnn::allreduce {

// Translations of the hosts that map a plan onto itself: where hosts and links are alike, all ranks
// at one place in their hosts do the same at the same time, so that the ranks of host 0 stand for
// all. Ranks are coordinates on a grid whose first dimensions are a host; a translation moves the
// others, round and round.
class Symmetry {
 public:
  // dims: of the grid, the fastest first. each: ranks of a host, a product of the first dims.
  Symmetry(std::vector<int> dims, int each) : dims_(std::move(dims)), each_(each) {}

  int representatives() const { return each_; }
  // The rank of host 0 that stands for this one.
  int representative(int rank) const { return rank % each_; }
  // Where `to` is moved by the translation that moves `from` to its representative.
  int moved(int from, int to) const;

 private:
  std::vector<int> dims_;
  int each_;
};

// The translations of the algorithm's plans, if their chunks are cut into equal slices. Nothing:
// hosts differ, a link is slower than others, or the algorithm has none.
std::optional<Symmetry> symmetry_of(const Algorithm& algorithm, const Topology& topology,
                                    const Options& options);

// The ranks of each host if all hosts have equally many, else nothing.
std::optional<int> ranks_of_each_host(const Topology& topology);

}  // namespace cnn::allreduce
