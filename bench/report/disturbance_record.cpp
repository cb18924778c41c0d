#include "bench/report/disturbance_record.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cnn::bench {

Json to_json(const Disturbance& disturbance) {
  Json json{{"involuntary_switches", disturbance.involuntary_switches},
            {"cpu_seconds", disturbance.cpu_seconds}};
  if (disturbance.steal_seconds) {
    json["steal_seconds"] = *disturbance.steal_seconds;
  }
  if (disturbance.others_seconds) {
    json["others_seconds"] = *disturbance.others_seconds;
  }
  if (disturbance.throttled) {
    json["throttled"] = *disturbance.throttled;
  }
  if (disturbance.disturbed()) {
    json["causes"] = disturbance.causes.names();
  }
  return json;
}

DisturbanceRecord::DisturbanceRecord(std::vector<int> cpus,
                                     std::function<std::optional<std::uint64_t>()> throttled,
                                     Console& console, Json& result)
    : cpus_(std::move(cpus)),
      throttled_(std::move(throttled)),
      console_(console),
      result_(result) {}

void DisturbanceRecord::start(const RunStart& run) {
  watch_.emplace(SystemCounters(cpus_), run.timed_steps, throttled_);
}

void DisturbanceRecord::timing_starts() { watch_->resume(); }

void DisturbanceRecord::step_finished(const FinishedStep& step) {
  if (step.timed()) {
    watch_->add_step(step.values.seconds);
  }
}

void DisturbanceRecord::pause() { watch_->pause(); }

void DisturbanceRecord::resume() { watch_->resume(); }

void DisturbanceRecord::end(const RunEnd& /*end*/) {
  if (!watch_) {
    return;
  }
  const std::vector<Disturbance>& steps = watch_->finish();
  Json& rows = result_["steps"];
  for (std::size_t i = 0; i < std::min(steps.size(), rows.size()); ++i) {
    rows[i]["disturbed"] = steps[i].disturbed();
    rows[i]["disturbance"] = to_json(steps[i]);
  }
  if (Json& summary = result_["summary"]; !summary.is_null()) {
    summary["disturbed_steps"] = count_disturbed(steps);
  }
  if (const std::optional<std::string> line = disturbance_line(steps)) {
    console_.note(*line);
  }
}

void DisturbanceRecord::failed(const RunEnd& end, std::string_view /*what*/) { this->end(end); }

}  // namespace cnn::bench
