#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "allreduce/predict_step.h"
#include "bench/flags/config.h"
#include "bench/flags/json.h"
#include "bench/ranks/exchange_flags.h"
#include "bench/report/console.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::bench {

// A step of so many ranks, each on a device of its own.
struct RanksPrediction {
  int ranks = 1, hosts = 1;
  double overlapped_seconds = 0;  // of the step by the waits of the plan alone
  double alone_seconds = 0;       // of the same step without any exchange
  double exchange_seconds = 0;    // of all buckets, one after another
  double slowdown_seconds = 0;    // by which computing takes longer beside the exchange
  double straggler_seconds = 0;   // until the slowest rank is there
  // The same, exchanged at once after the last gradient.
  allreduce::StepTime without_overlap;
  std::string largest_by;  // what the largest bucket is reduced by: "grid_of_direct 8x8 in 4"

  double step_seconds() const {
    return alone_seconds + exposed_seconds() + slowdown_seconds + straggler_seconds;
  }
  // The part of the exchange that no computing hides. Rounding must not make it negative.
  double exposed_seconds() const { return std::max(0.0, overlapped_seconds - alone_seconds); }
  double efficiency() const { return alone_seconds / step_seconds(); }
};

// Assumptions of a prediction that no plan tells; see the flags of these names.
struct RankAssumptions {
  double jitter = 0, slowdown = 0;
};
RankAssumptions assumptions_of(const CommFlags& flags);
// Adds the slow-down of computing under the exchange, and the wait for the slowest rank.
void add_assumed(RanksPrediction& prediction, const RankAssumptions& assumed);
// "assumed: the step of a rank has a standard deviation of 1 %, ...".
std::string assumptions_text(const RankAssumptions& assumed);

// How so many ranks would exchange: links as flags and --comm_calibration_file say, else usual ones
// of 100 Gbit/s. Throws Error for ranks that do not fill their hosts, and as possible_exchange()
// for the largest bucket of the plan.
Exchange simulated_exchange(const Config& config, std::int64_t ranks, const StepPlan& plan);

// One for each number of --simulate_ranks. plan: that exchanges; costs: of its nodes on one device.
// Throws as simulated_exchange().
std::vector<RanksPrediction> predict_ranks(const StepPlan& plan, const Costs& costs,
                                           const Config& config);

// Lines of stderr with one of each prediction, and an array for the result file. batch: examples of
// a rank's step.
void report_ranks(std::span<const RanksPrediction> predictions, double batch, Console& console,
                  Json& result);

}  // namespace cnn::bench
