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
  Emitter(const Request& request, const Outline& outline, const Unrolled& unrolled,
          const Evaluator& evaluated)
      : outline_(outline),
        unrolled_(unrolled),
        evaluated_(evaluated),
        given_(request.schedule),
        offload_(evaluated.departures().size()),
        writer_(request.options.sync_mode) {}

  Schedule emit() {
    for (std::uint32_t s = 0; s < unrolled_.steps.size(); ++s) {
      for (; next_return_ < evaluated_.returns().size() &&
             evaluated_.returns()[next_return_].position == s;
           ++next_return_) {
        add_return();
      }
      add_step(s);
      for (; next_departure_ < evaluated_.departures().size() && stay_of(next_departure_).last == s;
           ++next_departure_) {
        offload_[next_departure_] = writer_.offload(tensor(stay_of(next_departure_).root));
      }
    }
    return writer_.take();
  }

 private:
  const Stay& stay_of(std::size_t departure) const {
    return unrolled_.stays[evaluated_.departures()[departure].stay];
  }
  TensorId tensor(std::uint32_t root) const { return outline_.roots[root].tensor; }

  void add_return() {
    std::vector<StepId> after;
    for (std::size_t d = 0; d < next_departure_; ++d) {
      if (evaluated_.departures()[d].freed_for_return == next_return_) {
        after.push_back(offload_[d]);
      }
    }
    const Return& one = evaluated_.returns()[next_return_];
    writer_.fetch(tensor(unrolled_.stays[one.stay].root), std::move(after));
  }

  void add_step(std::uint32_t s) {
    const UnrolledStep& one = unrolled_.steps[s];
    Step step = one.again ? Step{} : given_.steps[one.given];
    step.after.clear();
    if (one.kind == StepKind::compute) {
      step.action = Compute{NodeId{one.id}};
    } else if (one.again) {
      step = {.action = Fetch{tensor(one.id)}, .lane = Lane::copy_in};
    }
    for (std::size_t d = 0; d < next_departure_; ++d) {
      if (evaluated_.departures()[d].freed_for_step == s) {
        step.after.push_back(offload_[d]);
      }
    }
    writer_.add(std::move(step));
  }

  const Outline& outline_;
  const Unrolled& unrolled_;
  const Evaluator& evaluated_;
  const Schedule& given_;
  std::vector<StepId> offload_;  // by departure
  ScheduleWriter writer_;
  std::size_t next_return_ = 0, next_departure_ = 0;
};

}  // namespace

Schedule schedule_of(const Request& request, const Outline& outline, const Unrolled& unrolled,
                     const Evaluator& evaluated) {
  return Emitter(request, outline, unrolled, evaluated).emit();
}

Outcome outcome_of(const Request& request, const Schedule& schedule, std::size_t enough) {
  Schedule linked = schedule;
  const MemoryPlan memory = plan_memory(request.graph, schedule, workspaces_of(request), enough);
  link(request.graph, linked, memory);
  return {.device_bytes = memory.device_bytes,
          .host_bytes = memory.host_bytes,
          .seconds = end_of(simulate(request.graph, linked, request.costs))};
}

}  // namespace cnn::lms
