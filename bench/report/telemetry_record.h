#pragma once

#include <cstdint>
#include <optional>

#include "bench/flags/json.h"
#include "bench/machine/telemetry_sampler.h"
#include "bench/report/console.h"
#include "bench/report/observer.h"

namespace cnn::bench {

// Samples the device's telemetry while steps are timed, for a line on stderr and the section
// "telemetry" of the result file.
class TelemetryRecord final : public Observer {
 public:
  // References must outlive the record.
  TelemetryRecord(TelemetrySource& source, Console& console, Json& result);

  void start(const RunStart& run) override;
  void timing_starts() override;
  void pause() override;
  void resume() override;
  void end(const RunEnd& end) override;

  // Returns the sampler's count; empty before the first timed step.
  std::optional<std::uint64_t> throttled_samples() const;

 private:
  TelemetrySource& source_;
  Console& console_;
  Json& result_;
  std::int64_t global_batch_ = 0;
  std::optional<TelemetrySampler> sampler_;  // created at the first timed step
};

}  // namespace cnn::bench
