#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "bench/flags/json.h"
#include "bench/machine/disturbance_watch.h"
#include "bench/report/console.h"
#include "bench/report/observer.h"

namespace cnn::bench {

// Returns a step's disturbances for the result file, without counts that the system lacks.
Json to_json(const Disturbance& disturbance);

// Adds each timed step's disturbances to the sections "steps" and "summary" of the result file, and
// notes on stderr if over one in twenty was disturbed. List it after the observer that creates
// these sections.
class DisturbanceRecord final : public Observer {
 public:
  // cpus: that compute; none if another device does. throttled: see DisturbanceWatch. References
  // must outlive the record.
  DisturbanceRecord(std::vector<int> cpus, std::function<std::optional<std::uint64_t>()> throttled,
                    Console& console, Json& result);

  void start(const RunStart& run) override;
  void timing_starts() override;
  void step_finished(const FinishedStep& step) override;
  void pause() override;
  void resume() override;
  void end(const RunEnd& end) override;
  void failed(const RunEnd& end, std::string_view what) override;

 private:
  std::vector<int> cpus_;
  std::function<std::optional<std::uint64_t>()> throttled_;
  Console& console_;
  Json& result_;
  std::optional<DisturbanceWatch> watch_;
};

}  // namespace cnn::bench
