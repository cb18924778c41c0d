#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/report/console.h"
#include "bench/report/observer.h"

namespace cnn::bench {

struct Exchange;
class Team;

// What a rank has spent in the reductions of some steps, in seconds a step.
struct RankWindow {
  double mean = 0, p50 = 0, p99 = 0;
  double jitter = 0;  // the longest less the shortest
};
RankWindow window_of(std::vector<double> seconds);  // of each step; at least one

// What all ranks exchange in a step.
struct StepExchange {
  double bytes = 0, least_seconds = 0;  // of a rank; by the links, whatever the algorithm
  std::string ways;                     // "3 buckets by shared, 1 by grid_of_rings 2x2"
};
StepExchange step_exchange(std::span<const std::size_t> buckets, const Exchange& exchange);

// The lines of a window: times and speed of the rank that took longest, and which rank's times
// differ most from step to step.
std::vector<std::string> dump_lines(std::int64_t first_step, std::int64_t last_step,
                                    std::span<const RankWindow> ranks, const StepExchange& step);

// --comm_dump_iter: every so many timed steps, on stderr, what the exchange took in them.
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
};

}  // namespace cnn::bench
