#pragma once

#include "bench/flags/json.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::bench {

// Returns the plan's use of the arena over a step: "steps" with each start time and the live bytes,
// the "peak", the "biggest" tensors live at the peak, and the bytes "moved" to the host and back.
// Counts arena bytes only, without variables.
Json memory_profile_json(const StepPlan& plan, const Timeline& timeline);

}  // namespace cnn::bench
