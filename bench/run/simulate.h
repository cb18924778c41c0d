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

// The predicted time of a step for given costs of its nodes and copies, with the device's bounds.
// Launches, gaps between kernels and scalar copies cost nothing in the model.
struct Prediction {
  Timeline timeline;              // by StepId: lanes and waits of the plan
  double step_seconds = 0;        // end of the last step
  double roofline_seconds = 0;    // sum over the nodes, each operand moved once
  double arithmetic_seconds = 0;  // operations / peak only
  double flops = 0, bytes = 0;    // per step
  std::vector<OpCost> by_op;      // largest seconds first; each node once
};
Prediction predict(const StepPlan& plan, const Ceilings& ceilings, const Costs& costs);

// The number of convolutions of a plan, forward and backward, by the origin of their kernels.
struct Convolutions {
  std::int64_t by_library = 0, own = 0;
};
Convolutions count_convolutions(const StepPlan& plan);

// Implements --simulate: reports the planned step on the machine that `backend` describes, writes
// the predicted timeline to --trace_file, and fills the sections "simulation" and "plan" of the
// result.
void report_simulation(const Job& job, const RankContext& context, const Session& session,
                       Console& console, Json& result);

}  // namespace cnn::bench
