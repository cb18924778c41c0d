#include "runtime/timeline.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include "runtime/error.h"
#include "runtime/program.h"

namespace cnn {
namespace {

struct Duration {
  const Graph& graph;
  const Costs& costs;

  double operator()(const Compute& compute) const { return costs.seconds[index_of(compute.node)]; }
  double operator()(const Offload& offload) const {
    return copy(offload.tensor, costs.out_bytes_per_second);
  }
  double operator()(const Fetch& fetch) const {
    return copy(fetch.tensor, costs.in_bytes_per_second);
  }
  double copy(TensorId tensor, double bytes_per_second) const {
    const auto bytes = static_cast<double>(graph.info(tensor).desc.bytes());
    return bytes_per_second > 0 ? bytes / bytes_per_second : 0;
  }
};

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
      result += escape.data();
    } else {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace

Timeline simulate(const StepPlan& plan, const Costs& costs) {
  check(costs.seconds.size() == plan.graph->nodes().size(), "simulate: one cost for each node");
  std::array<double, lane_count> free_at{};
  Timeline timeline;
  timeline.reserve(plan.schedule.steps.size());
  for (const Step& step : plan.schedule.steps) {
    double& lane = free_at[static_cast<std::size_t>(step.lane)];
    double start = lane;
    for (const StepId wait : step.after) {
      start = std::max(start, timeline.at(index_of(wait)).end);
    }
    lane = start + std::visit(Duration{*plan.graph, costs}, step.action);
    timeline.push_back({.start = start, .end = lane});
  }
  return timeline;
}

std::string chrome_trace(const StepPlan& plan, const Timeline& timeline, std::string_view title) {
  check(timeline.size() == plan.schedule.steps.size(), "chrome_trace: one span for each step");
  constexpr double microseconds = 1e6;  // the unit of the format
  std::ostringstream out;
  out.setf(std::ios::fixed);
  out.precision(3);
  out << R"({"traceEvents":[)"
      << "\n"
      << R"({"name":"process_name","ph":"M","pid":0,"args":{"name":)" << json_string(title) << "}}";
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    out << ",\n"
        << R"({"name":"thread_name","ph":"M","pid":0,"tid":)" << lane << R"(,"args":{"name":)"
        << json_string(name_of(static_cast<Lane>(lane))) << "}}";
  }
  for (std::size_t s = 0; s < timeline.size(); ++s) {
    const Step& step = plan.schedule.steps[s];
    out << ",\n"
        << R"({"name":)" << json_string(to_string(*plan.graph, step.action))
        << R"(,"ph":"X","pid":0,"tid":)" << static_cast<std::size_t>(step.lane) << R"(,"ts":)"
        << timeline[s].start * microseconds << R"(,"dur":)"
        << (timeline[s].end - timeline[s].start) * microseconds << R"(,"args":{"step":)" << s
        << "}}";
  }
  out << "\n]}\n";
  return out.str();
}

}  // namespace cnn
