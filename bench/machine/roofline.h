#pragma once

#include <string>
#include <vector>

#include "bench/machine/backend.h"
#include "runtime/program.h"

namespace cnn::bench {

// Returns the minimum time to move so many bytes of operands, in seconds: as many bytes as a cache
// holds may be cached since the previous node.
double seconds_to_move(double bytes, const Ceilings& ceilings);

// Returns a lower bound of a step's seconds: the sum over its nodes of max(operations / peak,
// seconds_to_move(all operands)). Operations are those of the kernels' algorithms, so that no
// kernel can be faster than its bound.
double roofline_seconds(const StepPlan& plan, const Ceilings& ceilings);

// Returns the ratio of operations that the plan's kernels need to those that its layers define.
double share_of_operations(const StepPlan& plan);

// The timed steps of a run.
struct TimedSteps {
  double median_seconds = 0;
  double batch = 0;
};

// The measured speed relative to the roofline.
struct Roofline {
  double seconds = 0;                // of a step at the bound
  double percent = 0;                // of the bound that steps reached
  std::vector<std::string> lines{};  // for stderr
};
Roofline compare_with_roofline(const StepPlan& plan, const Ceilings& ceilings,
                               const TimedSteps& steps);

}  // namespace cnn::bench
