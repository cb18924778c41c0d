#pragma once

#include <optional>
#include <vector>

#include "allreduce/algorithm.h"

namespace cnn::allreduce {

// Translations of the hosts that map a plan onto itself. If hosts and links are equal, all ranks at
// the same place in their hosts do the same at the same time, so the ranks of host 0 represent all.
// Ranks are coordinates on a torus whose first dimensions are a host; a translation shifts the
// others.
class Symmetry {
 public:
  // dims: of the torus, the fastest first. each: the ranks of a host, a product of the first dims.
  Symmetry(std::vector<int> dims, int each) : dims_(std::move(dims)), each_(each) {}

  int representatives() const { return each_; }
  // Returns the rank of host 0 that represents this one.
  int representative(int rank) const { return rank % each_; }
  // Returns the image of `to` under the translation that maps `from` to its representative.
  int moved(int from, int to) const;

 private:
  std::vector<int> dims_;
  int each_;
};

// Returns the symmetry of the algorithm's plans if chunks are cut into equal slices; nothing if
// hosts or links differ or the algorithm has none.
std::optional<Symmetry> symmetry_of(const Algorithm& algorithm, const Topology& topology,
                                    const Options& options);

// Returns the ranks of each host if all hosts have equally many, otherwise nothing.
std::optional<int> ranks_of_each_host(const Topology& topology);

}  // namespace cnn::allreduce
