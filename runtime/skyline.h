#pragma once

#include <cstddef>
#include <vector>

#include "runtime/placement.h"

namespace cnn {

// Places intervals by the skyline heuristic of strip packing (Burke, Kendall and Whitwell, 2004;
// Sekiyama et al., 2018, place tensors so): the lowest run of steps above which all bytes are free
// takes an interval that fits between its first and its last step, or is raised to its lower
// neighbour. The largest weight decides between several that fit. Weights are bytes times
// steps, bytes, or steps; each round raises those of the intervals that stuck out above `goal`
// (squeaky wheel optimization: Joslin and Clements, 1999), and after some rounds they begin anew,
// changed at random. Returns the lowest placement found; ends with one that is not above the goal.
// Deterministic; ends after a round that exceeds so many comparisons, as which other work counts
// too.
Placement place_by_skyline(const std::vector<Interval>& intervals, std::size_t goal,
                           std::size_t max_comparisons);

}  // namespace cnn
