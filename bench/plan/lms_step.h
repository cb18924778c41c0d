#pragma once

#include <cstddef>
#include <optional>

#include "bench/plan/device_memory.h"
#include "bench/plan/job.h"
#include "bench/plan/lms_plan.h"
#include "runtime/program.h"

namespace cnn::bench {

struct RankContext;
struct Sizes;

// A training step as LMS has it.
struct LmsStep {
  Programs programs;   // the main one runs by the plan
  StepPlan unlimited;  // of the same graph
  LmsPlanner planner;
  // Bytes of the parameters in one update, where that is not the usual and the sizes do not say it.
  std::optional<std::size_t> bucket_bytes = {};
};

// Plans the training step of the programs, which are those of the sizes. A step that does not fit
// as it is updates variables in the smallest parts, which may be all that it needs. The step is
// planned once more with the largest gradients joined in nodes of their own, which takes less at
// the peak and a little longer, and the faster is taken: in f32, where the sum that is stored is
// the one that would be used, to the bit. A plan within 5 % of its bound is taken as it is.
// Neither choice depends on the budget otherwise, so that more memory is not slower but for cases
// within these 5 %. References must outlive it.
LmsStep plan_step(const Job& job, const RankContext& context, const Sizes& sizes,
                  Programs programs);

// Returns the bytes of the device that the plan of least memory of that step takes: made again with
// smaller joins only where it does not fit without.
std::size_t least_step_bytes(const Job& job, const RankContext& context, const Sizes& sizes,
                             Programs programs);

}  // namespace cnn::bench
