#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "allreduce/step_list.h"

// Proves that the step lists of an all-reduce are right, by symbolic execution: they run on
// formulas of contributions instead of numbers. Shares nothing with the generators but the list
// itself.
namespace cnn::allreduce {

// The numbers that one rank sends and adds.
struct Traffic {
  std::size_t messages = 0, elements_sent = 0, elements_added = 0;
};

struct Claim {
  std::size_t elements = 0;
  Order order = Order::fast;
  std::vector<int> dims = {};  // of sums in order; empty: one dimension
};

// Throws Error that names rank, chunk and range unless, however ranks and chunks are timed and even
// where a message waits for its receipt: every rank ends; every element is in the end the same sum
// on all ranks, with each rank's contribution in it exactly once, added in the order claimed and
// finished once; no range is read while it is written, here or by another rank; between two ranks a
// chunk has one message under way at a time. Returns what each rank did.
std::vector<Traffic> prove(std::span<const RankPlan> plans, const Claim& claim);

}  // namespace cnn::allreduce
