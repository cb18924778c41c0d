#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "bench/flags/json.h"

namespace cnn::bench {

class Peers;

// The lanes of one rank in a timed step.
struct RankLanes {
  double start = 0;  // of the step, in seconds of the rank's clock
  Json lanes;        // relative to `start`; see lanes_json
  std::string host = {};
};

// The message form of RankLanes, without the host; see allreduce/all_gather.h.
struct LanesMessage {
  double start = 0;
  std::string lanes;  // as JSON

  static auto fields(auto& self) { return std::tie(self.start, self.lanes); }
};
LanesMessage message_of(const RankLanes& rank);
RankLanes lanes_of(const LanesMessage& message);

double seconds_of(std::chrono::steady_clock::time_point moment);

// Returns the seconds by which each rank's clock is ahead of rank 0's. Ranks on one kernel share a
// clock; otherwise all ranks read their clocks after a barrier, ten times, and the result is the
// median. All processes call it together.
std::vector<double> clocks_ahead(Peers& peers);

// Returns an item for each rank, with `rank`, `host` and `lanes`, whose times count from the
// earliest start.
Json by_one_clock(std::vector<RankLanes> ranks);

// Returns the result of by_one_clock as Chrome trace JSON (chrome://tracing, Perfetto): a process
// for each rank, one row per lane.
std::string chrome_trace_of_ranks(const Json& ranks);

// Returns "comm: exchange 10.00 ms a step, ...": means over the items of section "ranks" for that
// many steps; empty if they exchange nothing.
std::string exchange_line(const Json& ranks, std::int64_t steps);

}  // namespace cnn::bench
