#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cnn {

// Bytes that must lie at one offset while steps first..last run.
struct Interval {
  std::uint32_t first = 0, last = 0;
  std::size_t bytes = 0;  // a multiple of the alignment, not 0
};

struct Placement {
  std::vector<std::size_t> offsets;  // of each interval
  std::size_t height = 0;            // highest end
};

// The most bytes that live in one step: no placement is lower.
std::size_t lower_bound(const std::vector<Interval>& intervals);

// Dynamic storage allocation: intervals that share a step do not overlap. NP-hard; several orders,
// each interval into the smallest or the lowest gap that holds it, then rounds that place first
// what stuck out. The smallest intervals, a thousandth of the bytes, come last into what gaps there
// are. Stops near the lower bound, or at `enough` bytes if that is more: what must fit into so much
// is found sooner, and found where a search for the least would miss it. Depends on nothing but its
// arguments; bounded work, some 10 ms for thousands.
Placement place(const std::vector<Interval>& intervals, std::size_t enough = 0);

}  // namespace cnn
