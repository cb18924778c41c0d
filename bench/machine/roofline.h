#pragma once

#include <string>
#include <vector>

#include "bench/machine/backend.h"
#include "runtime/program.h"

namespace cnn::bench {

// Least seconds for so many bytes of operands: as many of them as a cache holds may be in it, from
// the node before.
double seconds_to_move(double bytes, const Ceilings& ceilings);

// Lower limit of a step's seconds: the sum over its nodes of
// max(operations / peak, seconds_to_move(all operands)). Operations are those that the kernels'
// algorithms need, so that none can be faster than its limit.
double roofline_seconds(const StepPlan& plan, const Ceilings& ceilings);

// The operations that the kernels of a plan need, as a share of those that its layers count.
double share_of_operations(const StepPlan& plan);

// Steps that were timed.
struct TimedSteps {
  double median_seconds = 0;
  double batch = 0;
};

// How near steps came to what the device allows.
struct Roofline {
  double seconds = 0;                // of a step at the limit
  double percent = 0;                // of it that was reached
  std::vector<std::string> lines{};  // for stderr
};
Roofline compare_with_roofline(const StepPlan& plan, const Ceilings& ceilings,
                               const TimedSteps& steps);

}  // namespace cnn::bench
