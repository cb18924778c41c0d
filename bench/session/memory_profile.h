#pragma once

#include "bench/flags/json.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::bench {

// How the arena fills and empties over a step, by the plan: "steps" with the time at which each
// begins and the bytes that are live in it, the "peak", the "biggest" tensors that are live there,
// and what is "moved" to the host and back. Bytes of the arena alone, without variables.
Json memory_profile_json(const StepPlan& plan, const Timeline& timeline);

}  // namespace cnn::bench
