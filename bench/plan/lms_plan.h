#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/flags/json.h"
#include "bench/plan/lms_plan_file.h"
#include "layers/passes/fuse_gradients.h"
#include "lms/planner.h"
#include "lms/policy.h"
#include "lms/stalls.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::bench {

struct Backend;
struct Config;
struct RankContext;

// A planned training step, and how it came about.
struct LmsReport : lms::PlanReport {
  std::string policy;
  std::string file;              // that the plan was loaded from; empty: it was made here
  std::string unreached_limit;   // for the user, where the device has less than --lms_limit
  bool measured = false;         // costs are those of steps, not what is usual for such a device
  double unlimited_seconds = 0;  // of all nodes of the step as it is made without LMS
  double planning_seconds = 0;   // wall time from the compiled step to the plan
  // Gradient sums of more bytes than this are nodes of their own in the step.
  std::size_t max_fused_grad_add_bytes = layers::any_size;

  // The step runs by a plan: it needs one, or was given one.
  bool active() const { return necessary || !file.empty(); }
};

// Plans training steps as flags, device and plan file say.
class LmsPlanner {
 public:
  // resident_bytes: of variables and what is staged, beside the arena. References must outlive it.
  // Throws Error where the flags leave no memory.
  LmsPlanner(const Config& config, const RankContext& context, std::size_t resident_bytes);

  std::size_t budget() const { return planner_.options().budget; }  // variables and arena
  // Where the budget comes from, for messages: the device's memory or the flag that made it less.
  const std::string& budget_source() const { return budget_source_; }
  const lms::Budget& limits() const { return planner_.limits(); }  // of the arena

  // Plans the step by these costs; measured: they are those of steps that ran. The plan takes more
  // than the budget where nothing fits: then report().fits is false.
  StepPlan plan(const StepPlan& unlimited, const Costs& costs, bool measured);
  const LmsReport& report() const { return report_; }
  // Bytes of the device, variables included, that the plan with the smallest peak takes.
  std::size_t least_bytes(const StepPlan& unlimited, const Costs& costs) const;
  // The steps planned from now on sum gradients in smaller nodes than that of the report, which is
  // the step without LMS.
  void use_joins(std::size_t max_fused_grad_add_bytes, const LmsReport& whole);
  // From now on plan() returns the saved plan, and throws Error, naming the file, if it does not
  // belong to the step. An empty path stands for a plan of another rank.
  void use(SavedPlan plan, std::string path = {});
  SavedPlan latest() const;  // the result of the latest plan(), as a file keeps it
  // Goes on by the plan of that earlier report, predicted by the latest costs.
  void keep(LmsReport report, const StepPlan& plan, const Costs& costs);
  // Counts what was compiled and planned beside the plan of the report.
  void set_planning_seconds(double seconds) { report_.planning_seconds = seconds; }
  std::size_t resident_bytes() const { return planner_.options().resident_bytes; }

 private:
  StepPlan make(const StepPlan& unlimited, const Costs& costs);
  void compare();

  lms::Planner planner_;
  std::string budget_source_;
  std::string unreached_limit_;
  std::size_t max_fused_grad_add_bytes_ = layers::any_size;
  std::optional<LmsReport> whole_;  // of the step without smaller joins
  double whole_share_ = 1;          // its compute seconds over those of this step
  LmsReport report_;
  std::optional<SavedPlan> loaded_;
  std::string file_;  // that it was loaded from, if it was
};

// Costs before anything has run: nodes at the ceilings that are known of the device or expected of
// it, or at usual ones of a processor; the links as measured, or at the emulated speed.
Costs expected_costs(const StepPlan& plan, const Backend& backend);

// The summary block, and before it what the policy's original would have logged.
std::vector<std::string> lms_lines(const LmsReport& report, int debug_level);
Json lms_json(const LmsReport& report);
Json stalls_json(const lms::Stalls& stalls);

}  // namespace cnn::bench
