#pragma once

#include "bench/backend.h"
#include "runtime/program.h"

namespace cnn::bench {

// What the device reaches at best, measured with the backend's own kernels. Takes about a second at
// most, and memory of its own: call it outside timed regions.
Ceilings measure_ceilings(const Backend& backend, DataType compute);

// Lower limit of a step's seconds: the sum over its nodes of
// max(operations / peak, bytes of all operands / bandwidth).
double roofline_seconds(const StepPlan& plan, const Ceilings& ceilings);

}  // namespace cnn::bench
