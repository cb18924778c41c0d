#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cnn {

class Graph;
struct Schedule;
struct StepPlan;

struct Span {
  double start = 0, end = 0;  // seconds from the start of the step
};
using Timeline = std::vector<Span>;  // by StepId

struct Costs {
  std::vector<double> seconds;                               // of each node, by NodeId
  double out_bytes_per_second = 0, in_bytes_per_second = 0;  // 0: copies take no time
  // Both directions together while both are busy, shared in proportion; 0: the directions do not
  // slow each other down.
  double both_bytes_per_second = 0;
  double copy_latency = 0;                                       // seconds per copy
  double store_bytes_per_second = 0, load_bytes_per_second = 0;  // of a disk; 0: no time
};

// Simulates the lanes of a plan with given costs and the waits that the executor obeys. Throws
// Error unless each node has a cost.
Timeline simulate(const StepPlan& plan, const Costs& costs);
// Simulates a linked schedule.
Timeline simulate(const Graph& graph, const Schedule& schedule, const Costs& costs);
double end_of(const Timeline& timeline);  // seconds, of the last step

// Returns Chrome trace JSON (chrome://tracing, Perfetto): one row per lane.
std::string chrome_trace(const StepPlan& plan, const Timeline& timeline, std::string_view title);

}  // namespace cnn
