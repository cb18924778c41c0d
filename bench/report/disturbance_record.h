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

// Returns what disturbed a step as the result file shows it; what the system did not tell is left
// out.
Json to_json(const Disturbance& disturbance);

// Adds what disturbed each timed step to the sections "steps" and "summary" of the result file, and
// says so on stderr when it was more than one in twenty. List it behind the one that makes them.
class DisturbanceRecord final : public Observer {
 public:
  // cpus: that compute; none where another device does. throttled: as DisturbanceWatch takes it.
  // References must outlive the record.
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
