#pragma once

#include <cstddef>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/cost.h"

namespace cnn::allreduce {

// A way to reduce a buffer, with the seconds that the model gives it.
struct Candidate {
  const Algorithm* algorithm = nullptr;
  Options options;
  double seconds = 0;
};

// What is asked of a choice.
struct Wish {
  std::size_t elements = 0;
  Order order = Order::fast;
  Wire wire = Wire::f32;
  bool peers_memory = false;  // ranks of a host see one another's
  std::size_t channels = 64;  // that ranks have: a list may have as many chunks
};

// All ways that the catalog has for these ranks and this order, the fastest first: grids over the
// factors of ranks in a host and of hosts (none above 16 where it can be divided), one or more
// rings, and chunks as many as hide one dimension under another. A function of its arguments alone,
// so that all ranks choose alike.
std::vector<Candidate> candidates(const Topology& topology, const Wish& wish, const Links& links);

}  // namespace cnn::allreduce
