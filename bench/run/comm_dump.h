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

// The time that a rank has spent in the reductions of some steps, in seconds a step.
struct RankWindow {
  double mean = 0, p50 = 0, p99 = 0;
  double jitter = 0;  // the longest less the shortest
};
RankWindow window_of(std::vector<double> seconds);  // of each step; at least one

// The exchange of all ranks in a step.
struct StepExchange {
  double bytes = 0;                    // of a rank
  allreduce::Bound bound = {};         // of all buckets together, by the limit of the longest
  std::string ways = {};               // "3 buckets by shared, 1 by grid_of_rings 2x2"
  std::vector<double> bucket_mb = {};  // of each bucket
};
StepExchange step_exchange(std::span<const std::size_t> buckets, const Exchange& exchange);

// Seconds of a step in which a rank was in reductions: until the latest rank had begun the same
// reduction, and from then on.
struct WaitAndTransfer {
  double wait = 0, transfer = 0;
};
// Means over the steps of a window.
struct WaitTable {
  std::vector<WaitAndTransfer> of_rank;
  std::vector<WaitAndTransfer> of_bucket;  // of the rank that waited, or transferred, for longest
};
// reductions: of each rank, by one clock; all ranks make the same ones in the same order.
WaitTable wait_table(std::span<const std::vector<ReductionTime>> reductions, std::int64_t steps);
// Its rows, at most 16 of ranks and of buckets: those that take longest.
std::vector<std::string> wait_lines(const WaitTable& table, const StepExchange& step);

// The lines of a window: times and speed of the rank that took longest, and which rank's times
// differ most from step to step.
std::vector<std::string> dump_lines(std::int64_t first_step, std::int64_t last_step,
                                    std::span<const RankWindow> ranks, const StepExchange& step);

// --comm_dump_iter: every so many timed steps, on stderr, what the exchange took in them: how long
// each rank waited for the latest one, and how long the bytes moved, by rank and by bucket.
class CommDump final : public Observer {
 public:
  // References must outlive it. Every process has one.
  CommDump(Team& team, Console& console, int every);

  void timing_starts() override;
  void step_finished(const FinishedStep& step) override;

 private:
  Team& team_;
  Console& console_;
  std::int64_t every_;
  std::vector<double> before_;                // by rank of this process, until the latest step
  std::vector<std::vector<double>> seconds_;  // of each step of the window
  StepExchange exchanged_;
  double clock_ahead_ = 0;  // of the first process's
};

}  // namespace cnn::bench
