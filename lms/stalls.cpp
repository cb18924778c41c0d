#include "lms/stalls.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "lms/summary.h"
#include "runtime/error.h"

namespace cnn::lms {
namespace {

class StallTracer {
 public:
  StallTracer(const Graph& graph, const Schedule& schedule, const Timeline& timeline)
      : graph_(graph), steps_(schedule.steps), timeline_(timeline) {
    check(timeline.size() == steps_.size(), "stalls: one span for each step");
    std::array<std::optional<std::size_t>, lane_count> last;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      auto& before = last.at(static_cast<std::size_t>(steps_[s].lane));
      before_.push_back(before);
      before = s;
    }
  }

  Stalls find() {
    double idle_since = 0;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      if (steps_[s].lane == Lane::compute) {
        explain(idle_since, s);
        idle_since = std::max(idle_since, timeline_[s].end);
      }
    }
    result_.other += std::max(0.0, end_of(timeline_) - idle_since);
    return result_;
  }

 private:
  // Traces why this step did not start at `since`: from the last step it waited for, backwards.
  void explain(double since, std::size_t step) {
    for (double until = timeline_[step].start; until > since;) {
      const std::optional<std::size_t> awaited = last_awaited(step);
      if (!awaited || timeline_[*awaited].end <= since) {
        result_.other += until - since;
        return;
      }
      const auto& span = timeline_[*awaited];
      const double end = std::min(span.end, until);
      const double start = std::clamp(span.start, since, end);
      result_.other += until - end;
      cause(steps_[*awaited]) += end - start;
      until = start;
      step = *awaited;
    }
  }

  std::optional<std::size_t> last_awaited(std::size_t step) const {
    std::optional<std::size_t> last = before_[step];
    for (const StepId wait : steps_[step].after) {
      if (!last || timeline_[index_of(wait)].end > timeline_[*last].end) {
        last = index_of(wait);
      }
    }
    return last;
  }

  double& cause(const Step& step) {
    if (const auto* offload = std::get_if<Offload>(&step.action)) {
      return may_move(graph_, offload->tensor) ? result_.memory : result_.other;
    }
    if (const auto* fetch = std::get_if<Fetch>(&step.action)) {
      return may_move(graph_, fetch->tensor) ? result_.swap_in : result_.other;
    }
    if (std::holds_alternative<Store>(step.action)) {
      return result_.memory;
    }
    if (std::holds_alternative<Load>(step.action)) {
      return result_.swap_in;
    }
    // A node of a copy lane moves a variable whose place is the host.
    return step.lane == Lane::copy_in    ? result_.swap_in
           : step.lane == Lane::copy_out ? result_.memory
                                         : result_.other;
  }

  const Graph& graph_;
  const std::vector<Step>& steps_;
  const Timeline& timeline_;
  std::vector<std::optional<std::size_t>> before_;  // by StepId: previous step in its lane
  Stalls result_;
};

}  // namespace

Stalls stalls(const Graph& graph, const Schedule& schedule, const Timeline& timeline) {
  return StallTracer(graph, schedule, timeline).find();
}

}  // namespace cnn::lms
