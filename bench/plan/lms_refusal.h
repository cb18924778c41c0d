#pragma once

#include <cstddef>
#include <string>

#include "bench/plan/lms_plan.h"
#include "runtime/program.h"

namespace cnn::bench {

struct LmsFlags;
struct RankContext;

// Why the latest plan of --lms cannot run: what is needed, what is there, and what would help.
// needed: bytes of the device, of all that runs on it.
std::string lms_refusal(const LmsPlanner& planner, const StepPlan& plan, std::size_t needed,
                        const LmsFlags& flags, const RankContext& context);

}  // namespace cnn::bench
