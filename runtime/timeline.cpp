#include "runtime/timeline.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <sstream>

#include "runtime/error.h"
#include "runtime/program.h"

namespace cnn {
namespace {

// Computes the undisturbed durations of steps.
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
  double operator()(const Store& store) const {
    return copy(store.tensor, costs.store_bytes_per_second);
  }
  double operator()(const Load& load) const {
    return copy(load.tensor, costs.load_bytes_per_second);
  }
  double copy(TensorId tensor, double bytes_per_second) const {
    const auto bytes = static_cast<double>(graph.info(tensor).desc.bytes());
    return bytes_per_second > 0 ? costs.copy_latency + bytes / bytes_per_second : 0;
  }
};

// Models lanes whose copies slow down while the other direction is busy.
class SharedLink {
 public:
  SharedLink(const Graph& graph, const Schedule& schedule, const Costs& costs)
      : steps_(schedule.steps), duration_{graph, costs}, timeline_(steps_.size()) {
    const double sum = costs.out_bytes_per_second + costs.in_bytes_per_second;
    shared_speed_ = sum > 0 ? std::min(1.0, costs.both_bytes_per_second / sum) : 1;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      lanes_.at(static_cast<std::size_t>(steps_[s].lane)).steps.push_back(s);
    }
  }

  Timeline run() {
    for (std::size_t done = 0; done < steps_.size();) {
      start_what_can();
      const double speed = busy(Lane::copy_out) && busy(Lane::copy_in) ? shared_speed_ : 1;
      double pass = std::numeric_limits<double>::infinity();
      for (const LaneState& lane : lanes_) {
        pass = lane.running ? std::min(pass, lane.left / speed_of(lane, speed)) : pass;
      }
      check(pass < std::numeric_limits<double>::infinity(), "simulate: no step can start");
      now_ += pass;
      for (LaneState& lane : lanes_) {
        if (!lane.running) {
          continue;
        }
        const double needed = lane.left / speed_of(lane, speed);
        lane.left -= pass * speed_of(lane, speed);
        if (needed <= pass) {
          finish(lane);
          ++done;
        }
      }
    }
    return std::move(timeline_);
  }

 private:
  struct LaneState {
    std::vector<std::size_t> steps;  // in their order
    std::size_t next = 0;
    bool running = false;
    double left = 0;  // seconds at full speed
  };

  static bool is_copy(const Step& step) {
    return step.lane == Lane::copy_in || step.lane == Lane::copy_out;
  }
  bool busy(Lane lane) const { return lanes_.at(static_cast<std::size_t>(lane)).running; }
  double speed_of(const LaneState& lane, double of_copies) const {
    return is_copy(steps_[lane.steps[lane.next]]) ? of_copies : 1;
  }

  void start_what_can() {
    for (LaneState& lane : lanes_) {
      if (lane.running || lane.next == lane.steps.size()) {
        continue;
      }
      const std::size_t step = lane.steps[lane.next];
      const std::vector<StepId>& after = steps_[step].after;
      if (std::ranges::all_of(after, [&](StepId wait) { return is_done(index_of(wait)); })) {
        lane.running = true;
        lane.left = std::visit(duration_, steps_[step].action);
        timeline_[step].start = now_;
      }
    }
  }

  bool is_done(std::size_t step) const {
    const LaneState& lane = lanes_.at(static_cast<std::size_t>(steps_[step].lane));
    return lane.next > 0 && lane.steps[lane.next - 1] >= step;
  }

  void finish(LaneState& lane) {
    timeline_[lane.steps[lane.next]].end = now_;
    lane.running = false;
    ++lane.next;
  }

  const std::vector<Step>& steps_;
  Duration duration_;
  Timeline timeline_;
  std::array<LaneState, lane_count> lanes_;
  double shared_speed_ = 1;
  double now_ = 0;
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
  return simulate(*plan.graph, plan.schedule, costs);
}

Timeline simulate(const Graph& graph, const Schedule& schedule, const Costs& costs) {
  check(costs.seconds.size() == graph.nodes().size(), "simulate: one cost for each node");
  if (costs.both_bytes_per_second > 0) {
    return SharedLink(graph, schedule, costs).run();
  }
  std::array<double, lane_count> free_at{};
  Timeline timeline;
  timeline.reserve(schedule.steps.size());
  for (const Step& step : schedule.steps) {
    double& lane = free_at[static_cast<std::size_t>(step.lane)];
    double start = lane;
    for (const StepId wait : step.after) {
      start = std::max(start, timeline.at(index_of(wait)).end);
    }
    lane = start + std::visit(Duration{graph, costs}, step.action);
    timeline.push_back({.start = start, .end = lane});
  }
  return timeline;
}

double end_of(const Timeline& timeline) {
  double end = 0;
  for (const Span& span : timeline) {
    end = std::max(end, span.end);
  }
  return end;
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
    if (static_cast<Lane>(lane) == Lane::disk && plan.memory.disk_bytes == 0) {
      continue;
    }
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
