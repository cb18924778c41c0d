#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cnn {

// Bytes that must keep one offset while steps first..last run.
struct Interval {
  std::uint32_t first = 0, last = 0;
  std::size_t bytes = 0;  // a multiple of the alignment, not 0
};

struct Placement {
  std::vector<std::size_t> offsets;  // of each interval
  std::size_t height = 0;            // highest end
};

// Returns the maximum over the steps of the live bytes: no placement is lower.
std::size_t lower_bound(const std::vector<Interval>& intervals);

// Dynamic storage allocation: intervals that share a step do not overlap. The problem is NP-hard.
// The heuristic first places the core: large intervals that are live in full steps, some hundreds
// among thousands. It tries several orders, puts each interval into the smallest or the lowest gap
// that holds it, tries skylines (skyline.h), then repeats with the intervals that stuck out first.
// The others fill the gaps that the core leaves. Where they find none, all intervals but the
// smallest, a thousandth of the bytes, become the core. The search stops near the lower bound, or
// at `enough` bytes if that is more: a known limit ends it sooner, and succeeds where a search for
// the minimum would miss it. Deterministic; bounded work: at most some 40 ms for thousands of
// intervals, and less where nothing can fit into `enough`.
Placement place(const std::vector<Interval>& intervals, std::size_t enough = 0);

}  // namespace cnn
