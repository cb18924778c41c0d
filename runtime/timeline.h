#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cnn {

struct StepPlan;

struct Span {
  double start = 0, end = 0;  // seconds from the start of the step
};
using Timeline = std::vector<Span>;  // by StepId

struct Costs {
  std::vector<double> seconds;  // of each node, by NodeId
  double out_bytes_per_second = 0, in_bytes_per_second = 0;
};

// Runs the lanes of a plan against given costs, obeying the very waits the executor obeys.
Timeline simulate(const StepPlan& plan, const Costs& costs);

// Chrome trace JSON (chrome://tracing, Perfetto): one row per lane.
std::string chrome_trace(const StepPlan& plan, const Timeline& timeline, std::string_view title);

}  // namespace cnn
