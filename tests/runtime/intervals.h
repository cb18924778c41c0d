#pragma once

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "runtime/placement.h"

namespace cnn::tests {

// Makes an interval from its first step, its last step and its bytes.
inline Interval interval(std::uint32_t first, std::uint32_t last, std::size_t bytes) {
  return {.first = first, .last = last, .bytes = bytes};
}

// Fails the test if intervals that share a step share bytes, or one lies above the height.
inline void expect_disjoint(const std::vector<Interval>& intervals, const Placement& placement) {
  ASSERT_EQ(placement.offsets.size(), intervals.size());
  for (std::size_t a = 0; a < intervals.size(); ++a) {
    EXPECT_LE(placement.offsets[a] + intervals[a].bytes, placement.height);
    for (std::size_t b = 0; b < a; ++b) {
      const bool together =
          intervals[a].first <= intervals[b].last && intervals[b].first <= intervals[a].last;
      const bool share = placement.offsets[a] < placement.offsets[b] + intervals[b].bytes &&
                         placement.offsets[b] < placement.offsets[a] + intervals[a].bytes;
      EXPECT_FALSE(together && share) << a << " and " << b;
    }
  }
}

}  // namespace cnn::tests
