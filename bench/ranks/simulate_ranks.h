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

// The predicted step of so many ranks, each on its own device.
struct RanksPrediction {
  int ranks = 1, hosts = 1;
  double overlapped_seconds = 0;  // of the step with the waits of the plan alone
  double alone_seconds = 0;       // of the step without any exchange
  double exchange_seconds = 0;    // of all buckets in sequence
  double slowdown_seconds = 0;    // by which the exchange slows down computing
  double straggler_seconds = 0;   // of the wait for the slowest rank
  // The step with the exchange after the last gradient.
  allreduce::StepTime without_overlap;
  std::string largest_by;  // algorithm of the largest bucket: "grid_of_direct 8x8 in 4"

  double step_seconds() const {
    return alone_seconds + exposed_seconds() + slowdown_seconds + straggler_seconds;
  }
  // Returns the exposed communication. Rounding must not make it negative.
  double exposed_seconds() const { return std::max(0.0, overlapped_seconds - alone_seconds); }
  double efficiency() const { return alone_seconds / step_seconds(); }
};

// Assumptions of a prediction beyond the plan; see the flags of these names.
struct RankAssumptions {
  double jitter = 0, slowdown = 0;
};
RankAssumptions assumptions_of(const CommFlags& flags);
// Adds the slowdown of computing during the exchange, and the wait for the slowest rank.
void add_assumed(RanksPrediction& prediction, const RankAssumptions& assumed);
// Returns "assumed: the step of a rank has a standard deviation of 1 %, ...".
std::string assumptions_text(const RankAssumptions& assumed);

// Returns the exchange of so many ranks, with links from flags and --comm_calibration_file, else
// typical ones of 100 Gbit/s. Throws Error if the ranks do not fill their hosts, and like
// possible_exchange() for the largest bucket of the plan.
Exchange simulated_exchange(const Config& config, std::int64_t ranks, const StepPlan& plan);

// Returns a prediction for each number of --simulate_ranks. plan: with its exchange; costs: of its
// nodes on one device. Throws like simulated_exchange().
std::vector<RanksPrediction> predict_ranks(const StepPlan& plan, const Costs& costs,
                                           const Config& config);

// Prints a line of each prediction to stderr and adds an array to the result file. batch: examples
// per step and rank.
void report_ranks(std::span<const RanksPrediction> predictions, double batch, Console& console,
                  Json& result);

}  // namespace cnn::bench
