#include "bench/run/lms_observer.h"

#include <algorithm>
#include <fmt/format.h>

#include "bench/plan/lms_plan.h"
#include "bench/report/statistics.h"
#include "bench/report/units.h"
#include "bench/session/session.h"
#include "bench/session/team.h"
#include "lms/summary.h"
#include "runtime/median.h"

namespace cnn::bench {
namespace {

constexpr std::int64_t timed_of_warm_up = 5;  // maximum number of steps
constexpr std::int64_t timed_at_end = 2;

std::string moved_text(double bytes, const std::optional<double>& rate) {
  if (rate) {
    return fmt::format("{:.2f} GiB at {:.2f} GB/s", bytes / gib, 1e-9 * *rate);
  }
  // Too few bytes for a rate.
  return bytes > 0 ? fmt::format("{:.2f} MiB", bytes / mib) : "nothing";
}

// Returns the measured peak of the plan that the warm-up ran by; empty if it is that of all steps.
std::string replaced_text(const std::optional<std::size_t>& bytes) {
  return bytes ? fmt::format(" ({:.0f} MiB in the warm-up, by the first plan)",
                             static_cast<double>(*bytes) / mib)
               : std::string();
}

// The bound counts the kernels' times of the warm-up, or guessed ones where a plan was read from a
// file. A step may be faster than them: then the bound says nothing of it.
std::string distance_text(double step_seconds, double bound_seconds) {
  return step_seconds < bound_seconds
             ? "the timed steps were faster than the times that the lower bound counts"
             : fmt::format("distance to the lower bound {:.1f} %",
                           100 * (step_seconds / bound_seconds - 1));
}

}  // namespace

void MeasuredCosts::add(const StepPlan& plan, const Timeline& timeline) {
  const Graph& graph = *plan.graph;
  ++steps_;
  seconds_.resize(graph.nodes().size());
  const auto count = [&](Copies& copies, TensorId tensor, double seconds) {
    if (lms::may_move(graph, tensor)) {
      copies.bytes += static_cast<double>(graph.info(tensor).desc.bytes());
      copies.seconds += seconds;
    }
  };
  for (std::size_t s = 0; s < timeline.size(); ++s) {
    const Action& action = plan.schedule.steps[s].action;
    const double seconds = timeline[s].end - timeline[s].start;
    if (const auto* compute = std::get_if<Compute>(&action)) {
      seconds_[index_of(compute->node)].push_back(seconds);
    } else if (const auto* offload = std::get_if<Offload>(&action)) {
      count(out_, offload->tensor, seconds);
    } else if (const auto* fetch = std::get_if<Fetch>(&action)) {
      count(in_, fetch->tensor, seconds);
    } else if (const auto* store = std::get_if<Store>(&action)) {
      count(stored_, store->tensor, seconds);
    } else {
      count(loaded_, std::get<Load>(action).tensor, seconds);
    }
  }
  const lms::Stalls stalls = lms::stalls(graph, plan.schedule, timeline);
  stalls_.swap_in += stalls.swap_in;
  stalls_.memory += stalls.memory;
  stalls_.other += stalls.other;
}

std::optional<double> MeasuredCosts::Copies::rate() const {
  constexpr double enough = 1 << 20U;  // bytes; below, latency dominates
  return bytes > enough && seconds > 0 ? std::optional(bytes / seconds) : std::nullopt;
}

lms::Stalls MeasuredCosts::stalls() const {
  return {.swap_in = per_step(stalls_.swap_in),
          .memory = per_step(stalls_.memory),
          .other = per_step(stalls_.other)};
}

Costs MeasuredCosts::costs(const Costs& expected) const {
  Costs costs = expected;
  for (std::size_t n = 0; n < seconds_.size(); ++n) {
    costs.seconds[n] = seconds_[n].empty() ? costs.seconds[n] : median(seconds_[n]);
  }
  if (costs.out_bytes_per_second > 0) {
    costs.out_bytes_per_second = out_.rate().value_or(costs.out_bytes_per_second);
  }
  if (costs.in_bytes_per_second > 0) {
    costs.in_bytes_per_second = in_.rate().value_or(costs.in_bytes_per_second);
  }
  costs.store_bytes_per_second = stored_.rate().value_or(costs.store_bytes_per_second);
  costs.load_bytes_per_second = loaded_.rate().value_or(costs.load_bytes_per_second);
  return costs;
}

LmsObserver::LmsObserver(Team& team, Console& console, Json& result, bool has_plan_file)
    : team_(team),
      session_(team.first()),
      console_(console),
      result_(result),
      has_plan_file_(has_plan_file) {}

bool LmsObserver::wants_timeline(std::int64_t number) const {
  const LmsReport& report = *session_.lms();
  if (number > 0) {
    return (report.necessary || has_plan_file_) &&
           (number == 1 || number > timed_steps_ - timed_at_end);
  }
  return report.necessary && !has_plan_file_ && number > -timed_of_warm_up;
}

void LmsObserver::step_finished(const FinishedStep& step) {
  if (step.timeline != nullptr && session_.lms()->active()) {
    (step.timed() ? timed_ : warm_up_).add(session_.plan(), *step.timeline);
  }
}

void LmsObserver::timing_starts() {
  if (warm_up_.is_empty() || has_plan_file_) {
    team_.replan(std::nullopt);
    return;
  }
  team_.replan(warm_up_.costs(session_.expected_costs()));
  console_.note("[LMS][0] planned again by measured times:");
  for (const std::string& line : lms_lines(*session_.lms(), -1)) {
    console_.note(line);
  }
  result_["plan"] = session_.plan_json();
}

void LmsObserver::end(const RunEnd& end) {
  const LmsReport& report = *session_.lms();
  if (!report.active() || end.step_seconds.empty()) {
    return;
  }
  const double step = median({end.step_seconds.begin(), end.step_seconds.end()});
  console_.note(fmt::format(
      "[LMS][0] measured step median {:.1f} ms ({:+.1f} % of the prediction), measured peak {:.0f} "
      "MiB{}, {}",
      1e3 * step, 100 * (step / report.predicted_seconds - 1),
      static_cast<double>(session_.measured_step_peak_bytes()) / mib,
      replaced_text(session_.replaced_peak_bytes()),
      distance_text(step, report.lower_bound_seconds)));
  Json& json = result_["plan"]["lms"];
  json["measured_step_seconds"] = step;
  json["measured_peak_bytes"] = session_.measured_step_peak_bytes();
  json["replaced_peak_bytes"] = or_null(session_.replaced_peak_bytes());
  if (timed_.is_empty()) {
    return;  // interrupted
  }
  const lms::Stalls stalls = timed_.stalls();
  const double out = timed_.per_step(timed_.out().bytes), in = timed_.per_step(timed_.in().bytes);
  console_.note(fmt::format(
      "[LMS][0] measured stalls {:.1f} ms waiting for swap-ins, {:.1f} ms for memory, {:.1f} ms "
      "else; moved out {}, in {}",
      1e3 * stalls.swap_in, 1e3 * stalls.memory, 1e3 * stalls.other,
      moved_text(out, timed_.out().rate()), moved_text(in, timed_.in().rate())));
  json["stall_seconds"] = stalls_json(stalls);
  json["measured_out_bytes"] = static_cast<std::int64_t>(out);
  json["measured_in_bytes"] = static_cast<std::int64_t>(in);
  json["measured_out_bytes_per_second"] = or_null(timed_.out().rate());
  json["measured_in_bytes_per_second"] = or_null(timed_.in().rate());
  if (timed_.stored().bytes > 0) {
    console_.note(
        fmt::format("[LMS][0] measured disk: out {}, in {}",
                    moved_text(timed_.per_step(timed_.stored().bytes), timed_.stored().rate()),
                    moved_text(timed_.per_step(timed_.loaded().bytes), timed_.loaded().rate())));
    json["disk"]["measured_out_bytes_per_second"] = or_null(timed_.stored().rate());
    json["disk"]["measured_in_bytes_per_second"] = or_null(timed_.loaded().rate());
  }
}

}  // namespace cnn::bench
