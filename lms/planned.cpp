// The default policy: for each tensor that the forward pass makes for the backward pass, whether it
// is kept, leaves, or is made again, found by a search on an exact evaluation.
#include "lms/planned.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "lms/bound.h"
#include "lms/live_bytes.h"
#include "lms/python_text.h"
#include "lms/schedule_writer.h"
#include "lms/search.h"
#include "lms/summary.h"
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

Outcome outcome_of(const Request& request, const Schedule& schedule) {
  Schedule linked = schedule;
  const MemoryPlan memory = plan_memory(request.graph, schedule, workspaces_of(request));
  link(request.graph, linked, memory);
  return {.device_bytes = memory.device_bytes,
          .host_bytes = memory.host_bytes,
          .seconds = end_of(simulate(request.graph, linked, request.costs))};
}

namespace {

// The search counts bytes that live; placing them takes a little more, which is taken off what the
// next attempt may use.
class Planner {
 public:
  explicit Planner(const Request& request) : request_(request), outline_(outline(request)) {}

  Plan plan() {
    constexpr double near = 1.003;  // of the bound: nothing is gained by a longer search
    good_enough_ = near * lower_bound(request_).seconds;
    const std::size_t budget = request_.budget.device;
    const Found first = find({.device_bytes = budget, .work = work()});
    approach(first);
    if (first.evaluation.fits && is_far()) {
      approach(find({.device_bytes = budget, .work = work(), .exchanges = 10}));
    }
    for (int again = 0; again < 2 && first.evaluation.fits && is_unlucky(); ++again) {
      const Found other = find({.device_bytes = budget, .work = work(), .start = &latest_});
      approach(other);
    }
    if (!fits_ && first.evaluation.fits) {
      start_lower();
    }
    if (!fits_) {
      const Found thrifty = find({.thriftiest = true, .work = work()});
      offer(thrifty, budget);
      if (!fits_) {
        offer(thrifty, 0);  // what floor_bytes() found
      }
      approach(find({.device_bytes = budget, .work = work(), .start = &thrifty.fates}));
    }
    note_moves();
    return std::move(best_);
  }

  std::size_t floor_bytes() { return offer(find({.thriftiest = true, .work = work()}), 0); }

 private:
  // For --lms_debug: each tensor that leaves, each node that runs again.
  void note_moves() {
    const Graph& graph = request_.graph;
    const std::vector<bool> again = runs_again(graph, best_.schedule);
    for (std::size_t s = 0; s < again.size(); ++s) {
      const Action& action = best_.schedule.steps[s].action;
      const auto* offload = std::get_if<Offload>(&action);
      if (offload != nullptr && may_move(graph, offload->tensor)) {
        const TensorInfo& info = graph.info(offload->tensor);
        best_.notes.push_back({1, "Tensor " + info.name + " leaves the device (" +
                                      mib_text(info.desc.bytes()) + " MiB)"});
      } else if (again[s]) {
        best_.notes.push_back({1, "Node " + to_string(graph, action) + " runs again"});
      }
    }
  }

  bool is_done() const {
    constexpr double as_evaluated = 1.004;
    return fits_ && seconds_ <= as_evaluated * evaluated_;
  }

  // From the bound: another way through the same plans may end at better ones.
  bool is_far() const {
    constexpr double far = 1.03;
    return !fits_ || seconds_ > far * good_enough_;
  }

  // Places cost much of what was evaluated: other plans of that speed may find better ones.
  bool is_unlucky() const {
    constexpr double much = 1.03;
    return !fits_ || seconds_ > much * evaluated_;
  }

  // From a plan to others nearby that take a little less each time.
  void approach(Found found) {
    constexpr int attempts = 10;
    constexpr double heat = 0.003;
    evaluated_ =
        evaluated_ > 0 ? std::min(evaluated_, found.evaluation.seconds) : found.evaluation.seconds;
    std::size_t target = request_.budget.device;
    for (int a = 0; a < attempts && found.evaluation.fits; ++a) {
      // The search goes on from what moves more: it leaves room to change.
      offer(find({.device_bytes = target, .work = 0, .start = &found.fates, .spares = true}),
            target);
      if (is_done()) {
        return;
      }
      const std::size_t taken = offer(found, target);
      if (is_done()) {
        return;
      }
      const std::size_t over = taken - std::min(taken, request_.budget.device);
      target -= std::clamp(over, target / 200, target / 60);
      latest_ = found.fates;
      found = find({.device_bytes = target, .work = work() / 4, .heat = heat, .start = &latest_});
    }
  }

  // Where what is near does not fit once it is placed.
  void start_lower() {
    constexpr int attempts = 4;
    std::size_t target = request_.budget.device;
    for (int a = 0; a < attempts && !fits_; ++a) {
      target -= target / 16;
      offer(find({.device_bytes = target, .work = work()}), target);
    }
  }

  Found find(SearchOptions options) const {
    options.sync = request_.options.sync_mode;
    options.host_bytes = request_.budget.host;
    options.swaps = options.host_bytes > 0;
    options.drops = request_.options.recompute != Recomputation::off;
    options.good_enough = good_enough_;
    return search(outline_, options);
  }

  // Returns the bytes that the placed plan takes.
  std::size_t offer(const Found& found, std::size_t target) {
    // Of the step: so much earlier than needed copies end. None: as early as there is room.
    constexpr std::array<std::optional<double>, 4> slacks{std::nullopt, 0.03, 0.01, 0.002};
    Unroller unroller(outline_);
    Evaluator evaluator(outline_, target, request_.options.sync_mode);
    const Unrolled& unrolled = unroller.unroll(found.fates);
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const std::optional<double>& slack : slacks) {
      const double seconds = evaluator.evaluate(unrolled).seconds;
      if (slack) {
        evaluator.tighten(unrolled, *slack * seconds);
      }
      least = std::min(least, offer(schedule_of(request_, outline_, unrolled, evaluator)));
      if (evaluator.departures().empty() || is_done()) {
        break;  // all are the same, or nothing is gained by tighter copies
      }
    }
    return least;
  }

  std::size_t offer(Schedule schedule) {
    const Outcome outcome = outcome_of(request_, schedule);
    const bool fits = outcome.device_bytes <= request_.budget.device &&
                      outcome.host_bytes <= request_.budget.host;
    if (best_.schedule.steps.empty() || (fits && (!fits_ || outcome.seconds < seconds_)) ||
        (!fits && !fits_ && outcome.device_bytes < bytes_)) {
      best_.schedule = std::move(schedule);
      fits_ = fits;
      seconds_ = outcome.seconds;
      bytes_ = outcome.device_bytes;
    }
    return outcome.device_bytes;
  }

  // Small steps need no more plans looked at than large ones.
  std::size_t work() const {
    constexpr std::size_t most = 6'000'000, plans = 18'000;
    return std::min(most, plans * outline_.steps.size());
  }

  const Request& request_;
  Outline outline_;
  Fates latest_;
  Plan best_;
  bool fits_ = false;
  double seconds_ = 0, evaluated_ = 0, good_enough_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

std::size_t floor_bytes(const Request& request) { return Planner(request).floor_bytes(); }

Plan planned(const Request& request) { return Planner(request).plan(); }

}  // namespace cnn::lms
