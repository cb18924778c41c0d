#include "bench/run/lms_observer.h"

#include <algorithm>
#include <fmt/format.h>

#include "bench/report/statistics.h"
#include "bench/run/lms_plan.h"
#include "bench/run/session.h"

namespace cnn::bench {
namespace {

constexpr std::int64_t timed_steps = 5;  // of the warm-up, at most

}  // namespace

void MeasuredCosts::add(const StepPlan& plan, const Timeline& timeline) {
  seconds_.resize(plan.graph->nodes().size());
  for (std::size_t s = 0; s < timeline.size(); ++s) {
    const Action& action = plan.schedule.steps[s].action;
    const double seconds = timeline[s].end - timeline[s].start;
    if (const auto* compute = std::get_if<Compute>(&action)) {
      seconds_[index_of(compute->node)].push_back(seconds);
    } else if (const auto* offload = std::get_if<Offload>(&action)) {
      out_bytes_ += static_cast<double>(plan.graph->info(offload->tensor).desc.bytes());
      out_seconds_ += seconds;
    } else {
      in_bytes_ +=
          static_cast<double>(plan.graph->info(std::get<Fetch>(action).tensor).desc.bytes());
      in_seconds_ += seconds;
    }
  }
}

Costs MeasuredCosts::costs(const Costs& expected) const {
  constexpr double enough = 1 << 20U;  // bytes: less is all latency
  Costs costs = expected;
  for (std::size_t n = 0; n < seconds_.size(); ++n) {
    costs.seconds[n] = seconds_[n].empty() ? costs.seconds[n] : median(seconds_[n]);
  }
  if (out_bytes_ > enough && costs.out_bytes_per_second > 0) {
    costs.out_bytes_per_second = out_bytes_ / out_seconds_;
  }
  if (in_bytes_ > enough && costs.in_bytes_per_second > 0) {
    costs.in_bytes_per_second = in_bytes_ / in_seconds_;
  }
  return costs;
}

LmsObserver::LmsObserver(Session& session, Console& console, Json& result)
    : session_(session), console_(console), result_(result) {}

bool LmsObserver::wants_timeline(std::int64_t number) const {
  return number <= 0 && number > -timed_steps && session_.lms()->necessary;
}

void LmsObserver::step_finished(const FinishedStep& step) {
  if (step.timeline != nullptr && !step.timed()) {
    measured_.add(session_.plan(), *step.timeline);
  }
}

void LmsObserver::timing_starts() {
  if (measured_.is_empty()) {
    return;
  }
  session_.replan(measured_.costs(session_.expected_costs()));
  console_.note("[LMS][0] planned again by measured times:");
  for (const std::string& line : lms_lines(*session_.lms(), -1)) {
    console_.note(line);
  }
  result_["plan"]["lms"] = lms_json(*session_.lms());
}

void LmsObserver::end(const RunEnd& end) {
  const LmsReport& report = *session_.lms();
  if (!report.necessary || end.step_seconds.empty()) {
    return;
  }
  const double step = median({end.step_seconds.begin(), end.step_seconds.end()});
  console_.note(fmt::format(
      "[LMS][0] measured step median {:.1f} ms ({:+.1f} % of the prediction), measured peak {:.0f} "
      "MiB",
      1e3 * step, 100 * (step / report.predicted_seconds - 1),
      static_cast<double>(session_.measured_peak_bytes()) / (1024.0 * 1024.0)));
  result_["plan"]["lms"]["measured_step_seconds"] = step;
}

}  // namespace cnn::bench
