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

// Plans the training step of the programs, which were compiled at these sizes. If a step does not
// fit, it updates variables in the smallest buckets, which may suffice. plan_step() then plans
// again with the largest gradient sums as separate nodes, which lowers the peak and takes slightly
// longer, and returns the faster plan. This applies only to f32, where the stored sum equals the
// fused one bit for bit. A plan within 5 % of its bound is accepted at once. Neither choice depends
// on the budget otherwise, so that more memory is never slower except within these 5 %. References
// must outlive the result.
LmsStep plan_step(const Job& job, const RankContext& context, const Sizes& sizes,
                  Programs programs);

// Returns the device bytes of the plan with the smallest peak; tries smaller joins only if the step
// does not fit without them.
std::size_t least_step_bytes(const Job& job, const RankContext& context, const Sizes& sizes,
                             Programs programs);

}  // namespace cnn::bench
