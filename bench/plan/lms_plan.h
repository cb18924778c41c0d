#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/flags/json.h"
#include "bench/machine/backend.h"
#include "bench/plan/lms_plan_file.h"
#include "layers/passes/fuse_gradients.h"
#include "lms/policy.h"
#include "lms/stalls.h"
#include "lms/summary.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::bench {

struct Config;

// What the policy made of a training step. Bytes are of the device: variables and arena together.
struct LmsReport {
  std::string policy;
  std::string file;        // that the plan was loaded from; empty: it was made here
  bool necessary = false;  // the step does not fit without
  bool fits = true;        // the plan does
  std::size_t budget = 0, need = 0, floor = 0;
  std::size_t resident = 0;   // of variables and what is staged, in all of these
  std::size_t peak = 0;       // of the plan, as placed
  bool measured = false;      // costs are those of steps, not what is usual for such a device
  std::size_t live_peak = 0;  // of what lives in one step: no placement is lower
  std::size_t host = 0;       // of what has left, pinned
  std::size_t kept = 0;       // tensors that might have moved
  lms::Summary summary;
  double recompute_seconds = 0;  // of what runs again
  double compute_seconds = 0;    // of all nodes, once
  double unlimited_seconds = 0;  // the same of the step as it is made without LMS
  Timeline timeline;             // of the step, simulated
  double predicted_seconds = 0;  // until its end
  lms::Stalls predicted_stalls;  // in it
  double lower_bound_seconds = 0;
  double planning_seconds = 0;
  std::vector<lms::Note> notes;  // of the policy
  // Of the step: gradients of more bytes meet in nodes of their own.
  std::size_t largest_join = layers::any_size;

  // The step runs by a plan: it needs one, or was given one.
  bool active() const { return necessary || !file.empty(); }
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
  // Of the device, variables included, that the thriftiest plan takes.
  std::size_t least_bytes(const StepPlan& unlimited, const Costs& costs) const;
  // The steps that it plans from now on are made of smaller joins than that of the report, which is
  // the step without LMS.
  void use_joins(std::size_t largest_join, const LmsReport& whole);
  // From now on that plan is what plan() gives, which throws Error, naming the file, where it is
  // wrong. No path: it is another rank's.
  void use(SavedPlan plan, std::string path = {});
  SavedPlan latest() const;  // what plan() gave last, as a file keeps it
  // The plan of that earlier report goes on, by the latest costs.
  void keep(LmsReport report, const StepPlan& plan, const Costs& costs);

 private:
  lms::Request request_for(const StepPlan& unlimited, const Schedule& schedule,
                           const Costs& costs) const;  // refers to all three
  lms::Plan find(const lms::Request& request) const;
  StepPlan place(const StepPlan& unlimited) const;
  void describe(const StepPlan& plan, const lms::Request& request);
  void compare();

  const Config& config_;
  std::size_t resident_bytes_;
  std::size_t budget_;
  lms::Budget limits_;
  lms::Options options_;
  std::size_t largest_join_ = layers::any_size;
  std::optional<LmsReport> whole_;  // of the step without smaller joins
  double whole_share_ = 1;          // of this step's seconds that that takes
  std::size_t floor_ = 0;           // bytes of the arena, once known: no cost changes it
  LmsReport report_;
  Schedule schedule_;  // of the latest plan
  std::optional<SavedPlan> loaded_;
  std::string file_;  // that it was loaded from, if it was
};

// Before anything has run: nodes at the ceilings that are known of the device, or at usual ones of
// its kind; the links as measured, or at the emulated speed.
Costs expected_costs(const StepPlan& plan, const Backend& backend);

// The summary block, and before it what the policy's original would have logged.
std::vector<std::string> lms_lines(const LmsReport& report, int debug_level);
Json lms_json(const LmsReport& report);
Json stalls_json(const lms::Stalls& stalls);

}  // namespace cnn::bench
