#pragma once

#include <cstddef>
#include <string>

#include "bench/plan/lms_plan.h"
#include "runtime/program.h"

namespace cnn::bench {

struct DeviceMemory;
struct Job;
struct LmsFlags;
struct Programs;
struct RankContext;

// Returns why the latest plan of --lms cannot run: the bytes needed, the bytes available, and the
// remedies. needed: device bytes of all that runs.
std::string lms_refusal(const LmsPlanner& planner, const StepPlan& plan, std::size_t needed,
                        const LmsFlags& flags, const RankContext& context);

// Returns why the evaluation of a run whose flags give its batch cannot run in the budget, whatever
// its training needs; empty if it can. memory: of the programs.
std::string evaluation_refusal(const Job& job, const Programs& programs, const DeviceMemory& memory,
                               const LmsPlanner& planner);

// Returns the advice to compute the batch, images or dense layers in more slices, where that may
// need less memory; else nothing.
std::string slices_advice(const Job& job, const layers::Slicing& slicing);

}  // namespace cnn::bench
