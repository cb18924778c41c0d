#include "lms/plan_schedule.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "lms/live_bytes.h"
#include "lms/schedule_writer.h"
#include "runtime/memory_plan.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::lms {
namespace {

class Emitter {
 public:
  Emitter(const Request& request, const PlanningProblem& problem, const ExpandedSchedule& expanded,
          const Evaluator& evaluated)
      : problem_(problem),
        expanded_(expanded),
        evaluated_(evaluated),
        given_(request.schedule),
        graph_(request.graph),
        offload_(evaluated.swap_outs().size()),
        writer_(request.options.sync_mode) {}

  Schedule emit() {
    for (std::uint32_t s = 0; s < expanded_.steps.size(); ++s) {
      for (; next_swap_in_ < evaluated_.swap_ins().size() &&
             evaluated_.swap_ins()[next_swap_in_].position == s;
           ++next_swap_in_) {
        add_return();
      }
      add_step(s);
      for (;
           next_swap_out_ < evaluated_.swap_outs().size() && interval_of(next_swap_out_).last == s;
           ++next_swap_out_) {
        offload_[next_swap_out_] = writer_.offload(tensor(interval_of(next_swap_out_).root));
      }
    }
    return writer_.take();
  }

 private:
  const LiveInterval& interval_of(std::size_t swap_out) const {
    return expanded_.intervals[evaluated_.swap_outs()[swap_out].interval];
  }
  TensorId tensor(std::uint32_t root) const { return problem_.roots[root].tensor; }

  void add_return() {
    std::vector<StepId> after;
    for (std::size_t d = 0; d < next_swap_out_; ++d) {
      if (evaluated_.swap_outs()[d].freed_for_swap_in == next_swap_in_) {
        after.push_back(offload_[d]);
      }
    }
    const PlacedSwapIn& one = evaluated_.swap_ins()[next_swap_in_];
    writer_.fetch(tensor(expanded_.intervals[one.interval].root), std::move(after));
  }

  void add_step(std::uint32_t s) {
    const ExpandedStep& one = expanded_.steps[s];
    Step step = one.again ? Step{} : given_.steps[one.given];
    step.after.clear();
    if (one.kind == StepKind::compute) {
      step.action = Compute{NodeId{one.id}};
      step.lane = graph_.nodes()[one.id].op->lane();
    } else if (one.again) {
      step = {.action = Fetch{tensor(one.id)}, .lane = Lane::copy_in};
    }
    for (std::size_t d = 0; d < next_swap_out_; ++d) {
      if (evaluated_.swap_outs()[d].freed_for_step == s) {
        step.after.push_back(offload_[d]);
      }
    }
    writer_.add(std::move(step));
  }

  const PlanningProblem& problem_;
  const ExpandedSchedule& expanded_;
  const Evaluator& evaluated_;
  const Schedule& given_;
  const Graph& graph_;
  std::vector<StepId> offload_;  // by swap-out
  ScheduleWriter writer_;
  std::size_t next_swap_in_ = 0, next_swap_out_ = 0;
};

}  // namespace

Schedule schedule_of(const Request& request, const PlanningProblem& problem,
                     const ExpandedSchedule& expanded, const Evaluator& evaluated) {
  return Emitter(request, problem, expanded, evaluated).emit();
}

Outcome outcome_of(const Request& request, const Schedule& schedule, std::size_t enough) {
  return outcome_of(request, schedule,
                    plan_memory(request.graph, schedule, workspaces_of(request), enough));
}

Outcome outcome_of(const Request& request, const Schedule& schedule, const MemoryPlan& memory) {
  Schedule linked = schedule;
  link(request.graph, linked, memory);
  return {.device_bytes = aligned(memory.device_bytes),
          .host_bytes = memory.host_bytes,
          .seconds = end_of(simulate(request.graph, linked, request.costs))};
}

}  // namespace cnn::lms
