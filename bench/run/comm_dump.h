#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "allreduce/limits.h"
#include "bench/ranks/rank_exchange.h"
#include "bench/report/console.h"
#include "bench/report/observer.h"

namespace cnn::bench {

struct Exchange;
class Team;

// A rank's time in the reductions of some steps, in seconds per step.
struct RankWindow {
  double mean = 0, p50 = 0, p99 = 0;
  double jitter = 0;  // maximum minus minimum
};
RankWindow window_of(std::vector<double> seconds);  // seconds: of each step; at least one

// The exchange of all ranks in a step.
struct StepExchange {
  double bytes = 0;             // per rank
  allreduce::Bound bound = {};  // of all buckets; its `by` is that of the largest bucket bound
  std::string algorithms = {};  // "3 buckets by shared, 1 by grid_of_rings 2x2"
  std::vector<double> bucket_mb = {};  // of each bucket
};
StepExchange step_exchange(std::span<const std::size_t> buckets, const Exchange& exchange);

// A rank's time in a step's reductions, in seconds: `wait` until the last rank had begun the same
// reduction, `transfer` from then on.
struct WaitAndTransfer {
  double wait = 0, transfer = 0;
};
// Means over the steps of a window.
struct WaitTable {
  std::vector<WaitAndTransfer> of_rank;
  std::vector<WaitAndTransfer> of_bucket;  // maxima over the ranks
};
// reductions: of each rank, on a common clock; all ranks make the same ones in the same order.
WaitTable wait_table(std::span<const std::vector<ReductionTime>> reductions, std::int64_t steps);
// Returns the table's rows: at most 16 of ranks and of buckets, those with the longest times.
std::vector<std::string> wait_lines(const WaitTable& table, const StepExchange& step);

// Returns the lines of a window: times and speed of the slowest rank, and the rank whose times vary
// most between steps.
std::vector<std::string> dump_lines(std::int64_t first_step, std::int64_t last_step,
                                    std::span<const RankWindow> ranks, const StepExchange& step);

// Implements --comm_dump_iter: after every `every` timed steps, prints to stderr how long each rank
// waited for the last one, and how long transfers took, by rank and by bucket.
class CommDump final : public Observer {
 public:
  // References must outlive the object. Every process has one.
  CommDump(Team& team, Console& console, int every);

  void timing_starts() override;
  void step_finished(const FinishedStep& step) override;

 private:
  Team& team_;
  Console& console_;
  std::int64_t every_;
  std::vector<double> before_;  // seconds by rank of this process, up to the latest step
  std::vector<std::vector<double>> seconds_;  // of each step of the window
  StepExchange exchanged_;
  double clock_ahead_ = 0;  // of the first process's clock, seconds
};

}  // namespace cnn::bench
