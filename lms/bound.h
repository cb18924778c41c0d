#pragma once

#include <cstddef>

#include "lms/policy.h"
#include "lms/pressure.h"

namespace cnn::lms {

// A lower bound that no plan can beat: none that runs the compute steps in the order of the request
// and acts on what its options let leave, between the time that it is made and its last use, by
// copies out and back and by running its makers again. Infinite: there is no such plan.
struct Bound {
  double seconds = 0;
  double seconds_swap_only = 0;  // of plans that run nothing again
  std::size_t least_bytes = 0;   // of the arena, below which there is no such plan
};

// Each op that holds more than the budget without a plan says how many bytes must be gone before it
// starts, and must come back behind it: by a link, or by running nodes again. For k seconds of such
// repetitions in all, the most bytes that they can free at each op are a fractional knapsack; what
// is left takes the link's time in front of one op and behind the same or a later one. The bound is
// the least over k. Some 10 ms for a thousand nodes.
Bound lower_bound(const Request& request);
// The same, of a pressure at hand.
Bound lower_bound(const Request& request, const Pressure& pressure);

// The seconds of the first, for another budget of the arena than that of the request.
double lower_bound_at(const Request& request, std::size_t device_bytes);

// Seconds that a schedule from elsewhere, such as a file, cannot undercut. It may move what the
// options of the request do not let leave, so they are not asked. If it runs the nodes in another
// order, or moves what lives in one of the two passes only, that is the time of all nodes.
double lower_bound_of(const Request& request, const Schedule& schedule);

}  // namespace cnn::lms
