#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "allreduce/step_list.h"

// Proves by symbolic execution that the action lists of an all-reduce are correct. The lists run on
// formulas of contributions instead of numbers. The proof shares no code with the generators of the
// lists.
namespace cnn::allreduce {

// The totals of what one rank sends and adds.
struct Traffic {
  std::size_t messages = 0, elements_sent = 0, elements_added = 0;
};

struct Claim {
  std::size_t elements = 0;
  Order order = Order::fast;
  std::vector<int> dims = {};  // of the order of sums; empty for one dimension
};

// Throws Error with rank, chunk and range unless the lists are correct for every timing of ranks
// and chunks, even if a message waits until its receipt. They are correct if all these hold:
//   - Every rank ends.
//   - Every element ends as the same finished sum on all ranks, with each contribution exactly once
//     in the claimed order.
//   - No range is read while it is written, by this rank or another.
//   - A chunk has at most one message in flight between two ranks.
// Returns the traffic of each rank.
std::vector<Traffic> prove(std::span<const RankPlan> plans, const Claim& claim);

}  // namespace cnn::allreduce
