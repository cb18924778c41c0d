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

// Plans the training step of the programs, which were compiled for these sizes, in several forms,
// and returns the fastest plan that fits:
// A step that does not fit updates variables in the smallest buckets, which may suffice.
// In f32 the step is also planned with Add nodes for the largest sums of gradients instead of fused
// additions. This lowers the peak and takes a little longer; the bits are the same, because the
// stored sum is f32 too.
// With --lms_slices=auto and --lms_variants=any it is also planned in 2, 4, 8 and 16 slices of its
// batch, and with --lms_row_slices=auto in as many of its images. Slices of norms take minutes to
// plan and are tried only if no form before them fits; with them alone a larger budget may be
// slower than one in which nothing else fits. Where none of these fits, --lms_variables=auto also
// plans all forms with the largest parameters on the host, to the same bits: a step of the same
// network that fits without may be slower than this. With --lms_dense_slices=auto and
// --lms_variants=any these are also planned with their dense layers in 8 slices. The other forms do
// not depend on the budget, and one is skipped only if its lower bound is not below the time of a
// plan already found, so that more memory is never slower. References must outlive the result.
LmsStep plan_step(const Job& job, const RankContext& context, const Sizes& sizes,
                  Programs programs);

// Returns the device bytes of the plan with the smallest peak; tries smaller joins, and slices
// where the planner may choose them, only if the step does not fit without them.
std::size_t min_step_bytes(const Job& job, const RankContext& context, const Sizes& sizes,
                           Programs programs);

}  // namespace cnn::bench
