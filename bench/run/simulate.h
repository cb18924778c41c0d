#pragma once

#include <cstdint>
#include <vector>

#include "bench/flags/json.h"
#include "bench/machine/step_costs.h"
#include "bench/report/console.h"
#include "runtime/kernel.h"
#include "runtime/timeline.h"

namespace cnn::bench {

struct Job;
struct RankContext;
class Session;

// The seconds of a step by given costs of its nodes and copies, beside the limits that the device
// sets. Launches, gaps between kernels and copies of scalars cost nothing here.
struct Prediction {
  Timeline timeline;              // by StepId: the lanes and waits of the plan
  double step_seconds = 0;        // end of the last step
  double roofline_seconds = 0;    // sum over the nodes with each operand moved once
  double arithmetic_seconds = 0;  // operations / peak alone
  double flops = 0, bytes = 0;    // of a step
  std::vector<OpCost> by_op;      // most seconds first; each node once
};
Prediction predict(const StepPlan& plan, const Ceilings& ceilings, const Costs& costs);

// The libraries that compute the convolutions of a plan, forward and backward.
struct Convolutions {
  std::int64_t by_library = 0, own = 0;
};
Convolutions count_convolutions(const StepPlan& plan);

// --simulate: says what the planned step would do on the machine that `backend` describes, writes
// the predicted timeline to --trace_file, and fills the sections "simulation" and "plan" of the
// result.
void report_simulation(const Job& job, const RankContext& context, const Session& session,
                       Console& console, Json& result);

}  // namespace cnn::bench
