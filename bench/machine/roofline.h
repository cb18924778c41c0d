#pragma once

#include "bench/machine/backend.h"
#include "runtime/program.h"

namespace cnn::bench {

// What the device reaches at best, measured with the backend's own kernels. Takes about a second at
// most, and memory of its own: call it outside timed regions.
Ceilings measure_ceilings(const Backend& backend, DataType compute);

// Lower limit of a step's seconds: the sum over its nodes of
// max(operations / peak, bytes of all operands / bandwidth). Operations are those that the kernels'
// algorithms need, so that none can be faster than its limit.
double roofline_seconds(const StepPlan& plan, const Ceilings& ceilings);

// The operations that the kernels of a plan need, as a share of those that its layers count.
double share_of_operations(const StepPlan& plan);

}  // namespace cnn::bench
