#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/flags/json.h"
#include "bench/machine/backend.h"
#include "lms/policy.h"
#include "lms/summary.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::bench {

struct Config;

// What the policy made of a training step. Bytes are of the device: variables and arena together.
struct LmsReport {
  std::string policy;
  bool necessary = false;  // the step does not fit without
  bool fits = true;        // the plan does
  std::size_t budget = 0, need = 0, floor = 0;
  std::size_t peak = 0;       // of the plan, as placed
  bool measured = false;      // costs are those of steps, not what is usual for such a device
  std::size_t live_peak = 0;  // of what lives in one step: no placement is lower
  std::size_t host = 0;       // of what has left, pinned
  std::size_t kept = 0;       // tensors that might have moved
  lms::Summary summary;
  double recompute_seconds = 0;  // of what runs again
  double compute_seconds = 0;    // of all nodes, once
  double predicted_seconds = 0;  // of the step, simulated
  double lower_bound_seconds = 0;
  double planning_seconds = 0;
  std::vector<lms::Note> notes;  // of the policy
};

// Plans training steps within the memory that flags and device give.
class LmsPlanner {
 public:
  // resident_bytes: of variables and what is staged, beside the arena. References must outlive it.
  LmsPlanner(const Config& config, const Backend& backend, std::size_t resident_bytes);

  std::size_t budget() const { return budget_; }  // variables and arena
  const lms::Budget& limits() const { return limits_; }

  // A plan for the step that `unlimited` is, by these costs; measured: of steps that ran. Its
  // memory may be more than the budget where nothing fits: then report().fits is false.
  StepPlan plan(const StepPlan& unlimited, const Costs& costs, bool measured);
  const LmsReport& report() const { return report_; }
  // The plan of that report goes on, which takes so long by the latest costs.
  void keep(LmsReport report, double seconds);

 private:
  const Config& config_;
  std::size_t resident_bytes_;
  std::size_t budget_;
  lms::Budget limits_;
  lms::Options options_;
  std::size_t floor_ = 0;  // bytes of the arena, once known: no cost changes it
  LmsReport report_;
};

// Before anything has run: nodes at the ceilings that are known of the device, or at usual ones of
// its kind; the links as measured, or at the emulated speed.
Costs expected_costs(const StepPlan& plan, const Backend& backend);

// The summary block, and before it what the policy's original would have logged.
std::vector<std::string> lms_lines(const LmsReport& report, int debug_level);
Json lms_json(const LmsReport& report);

}  // namespace cnn::bench
