#include "bench/report/telemetry_record.h"

#include "bench/machine/machine_json.h"

namespace cnn::bench {

TelemetryRecord::TelemetryRecord(TelemetrySource& source, Console& console, Json& result)
    : source_(source), console_(console), result_(result) {}

void TelemetryRecord::start(const RunStart& run) { global_batch_ = run.global_batch; }

void TelemetryRecord::timing_starts() {
  sampler_.emplace(source_);
  sampler_->resume();
}

void TelemetryRecord::pause() {
  if (sampler_) {
    sampler_->pause();
  }
}

void TelemetryRecord::resume() {
  if (sampler_) {
    sampler_->resume();
  }
}

std::optional<std::uint64_t> TelemetryRecord::throttled_samples() const {
  return sampler_ ? sampler_->throttled_samples() : std::nullopt;
}

void TelemetryRecord::end(const RunEnd& end) {
  if (sampler_) {
    const Telemetry telemetry = sampler_->finish(end.timed_steps * global_batch_);
    result_["telemetry"] = telemetry_json(telemetry);
    console_.note(telemetry_line(telemetry));
  }
}

}  // namespace cnn::bench
