#pragma once

#include <cstddef>
#include <optional>

#include "bench/machine/backend.h"
#include "bench/plan/device_memory.h"
#include "bench/plan/job.h"
#include "bench/plan/lms_plan.h"
#include "runtime/program.h"

namespace cnn::bench {

struct Sizes;

// A training step as LMS has it.
struct LmsStep {
  Programs programs;   // the main one runs by the plan
  StepPlan unlimited;  // of the same graph
  LmsPlanner planner;
  // The bucket size of its updates, where the sizes did not say and it is not as bucket_bytes() has
  // it.
  std::optional<std::size_t> bucket_bytes = {};
};

// Plans the training step of the programs, which are those of the sizes. Where nothing has to move
// if variables are updated in the smallest parts, they are. Where the plan stays far from
// its bound, the step is made once more with the largest gradients meeting in nodes of their own,
// which takes less at the peak and a little longer, and the faster is taken: in f32, where the sum
// that is stored is the one that would be used, to the bit. References must outlive it.
LmsStep plan_step(const Job& job, const Backend& backend, const Sizes& sizes, Programs programs);

// Returns the bytes of the device that the thriftiest plan of that step takes: made again with
// smaller joins only where it does not fit without.
std::size_t least_step_bytes(const Job& job, const Backend& backend, const Sizes& sizes,
                             Programs programs);

}  // namespace cnn::bench
