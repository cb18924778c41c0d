#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "bench/flags/json.h"

namespace cnn::bench {

class Peers;

// The lanes of one rank in a step that was timed.
struct RankLanes {
  double start = 0;  // of the step, in seconds of the rank's clock
  Json lanes;        // from there on; see lanes_json
  std::string host = {};
};

// The same as one process sends it to others, without the host; see bench/ranks/all_gather.h.
struct LanesMessage {
  double start = 0;
  std::string lanes;  // as JSON

  static auto fields(auto& self) { return std::tie(self.start, self.lanes); }
};
LanesMessage message_of(const RankLanes& rank);
RankLanes lanes_of(const LanesMessage& message);

double seconds_of(std::chrono::steady_clock::time_point moment);

// Seconds by which each rank's clock is ahead of the first's. Ranks of one kernel have one clock;
// else all read theirs as they leave a meeting, ten times, and the median counts. All processes
// call it together.
std::vector<double> clocks_ahead(Peers& peers);

// An item for each rank, with `rank`, `host` and `lanes`, whose times count from where the first of
// them began.
Json by_one_clock(std::vector<RankLanes> ranks);

// Returns what by_one_clock gave as Chrome trace JSON (chrome://tracing, Perfetto): a process for
// each rank, one row per lane.
std::string chrome_trace_of_ranks(const Json& ranks);

// "comm: exchange 10.00 ms a step, ...": means over the items of section "ranks" for that many
// steps; empty if they exchange nothing.
std::string exchange_line(const Json& ranks, std::int64_t steps);

}  // namespace cnn::bench
