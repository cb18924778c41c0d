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

// A training step planned by LMS.
struct LmsStep {
  Programs programs;   // `main` runs by the plan
  StepPlan unlimited;  // of the same graph
  LmsPlanner planner;
  // Bytes of the parameters in one update, if neither the default nor set in the sizes.
  std::optional<std::size_t> bucket_bytes = {};
};

// Plans the training step of the programs, which are those of the sizes. A step that does not fit
// as it is updates variables in the smallest parts, which may be all that it needs. The step is
// planned once more with the largest gradients joined in nodes of their own, which takes less at
// the peak and a little longer, and the faster is taken: in f32, where the sum that is stored is
// the one that would be used, to the bit. How it is divided does not depend on the budget, and it
// is left out only where its lower bound is not below the time of the other plan, so that more
// memory is never slower. With --lms_slices=auto and --lms_variants=any the step in 2, 4, 8 and 16
// slices of its batch is planned as well, and the fastest that fits is taken: the same forms in
// every budget, except those whose lower bound is not below the time of a plan already found.
// References must outlive it.
LmsStep plan_step(const Job& job, const RankContext& context, const Sizes& sizes,
                  Programs programs);

// Returns the device bytes of the plan with the smallest peak; tries smaller joins, and slices
// where the planner may choose them, only if the step does not fit without them.
std::size_t min_step_bytes(const Job& job, const RankContext& context, const Sizes& sizes,
                           Programs programs);

}  // namespace cnn::bench
