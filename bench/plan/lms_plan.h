#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/flags/json.h"
#include "bench/machine/disk_speed.h"
#include "bench/plan/lms_plan_file.h"
#include "layers/passes/fuse_gradients.h"
#include "layers/passes/slice_batch.h"
#include "lms/planner.h"
#include "lms/policy.h"
#include "lms/stalls.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::bench {

struct Backend;
struct Config;
struct DeviceMemory;
struct RankContext;

// A planned training step, and the origin of the plan.
struct LmsReport : lms::PlanReport {
  std::string policy;
  std::string file;              // that the plan was loaded from; empty: it was made here
  std::string note_prefix;       // of the policy's lines, see log_prefix()
  std::string idle_flags;        // for the user: flags of the budget that do not act, or empty
  bool measured = false;         // costs were measured in steps; false: expected from the device
  double unlimited_seconds = 0;  // of all nodes of the step without LMS
  // Wall time from the start of the process to the plan; of a plan made again by measured times:
  // from the end of the warm-up.
  double planning_seconds = 0;
  // Gradient sums of more bytes than this are nodes of their own in the step.
  std::size_t max_fused_grad_add_bytes = layers::any_size;
  layers::Slicing slicing;              // of the step along its batch
  std::size_t host_variable_bytes = 0;  // of variables that lie on the host
  // Behind the host, with the speeds that the plan counts with. Nothing: there is no disk.
  std::optional<DiskSpeed> disk_speed;

  // Returns whether the step runs by a plan: it needs one, or was given one.
  bool active() const { return necessary || !file.empty(); }
};

// Plans training steps by flags, device and plan file.
class LmsPlanner {
 public:
  // resident: the memory that every plan has: variables and staged inputs. slicing: of the steps
  // that it plans. References must outlive it. Throws Error if the flags leave no memory.
  LmsPlanner(const Config& config, const RankContext& context, const DeviceMemory& resident,
             const layers::Slicing& slicing = {});

  std::size_t budget() const { return planner_.options().budget; }  // variables and arena
  // Returns the origin of the budget for messages: the device's memory or the flag that reduced it.
  const std::string& budget_source() const { return budget_source_; }
  const lms::Options& options() const { return planner_.options().options; }
  const lms::Budget& limits() const { return planner_.limits(); }  // of the arena

  // Plans the step with these costs; measured: whether they come from executed steps. If nothing
  // fits, the plan exceeds the budget and report().fits is false.
  StepPlan plan(const StepPlan& unlimited, const Costs& costs, bool measured);
  // Plans the step with measured costs. Returns nothing if a signal interrupted the search; the
  // report is then still that of the former plan.
  std::optional<StepPlan> replan(const StepPlan& unlimited, const Costs& costs);
  const LmsReport& report() const { return report_; }
  // Returns the device bytes, variables included, of the plan with the smallest peak.
  std::size_t min_bytes(const StepPlan& unlimited, const Costs& costs) const;
  // Seconds that no plan of the step can be faster than within the budget.
  double lower_bound_seconds(const StepPlan& unlimited, const Costs& costs) const {
    return planner_.lower_bound_seconds(unlimited, costs);
  }
  // The steps planned from now on sum gradients in smaller nodes than that of the report, which is
  // the step without LMS. Before steps were measured, no plan is searched that is slower than that
  // of the report.
  void use_max_fused_grad_add(std::size_t max_fused_grad_add_bytes, const LmsReport& whole);
  // Declares that the steps planned from now on are another form of the step in this report, which
  // is the step without LMS.
  void compare_with(const LmsReport& whole) { whole_ = whole; }
  // Adds another form of the step, known by its smallest feasible budget and its lower bound: the
  // report then states the minimum of both over all forms.
  void include_form(const LmsReport& form);
  // Makes plan() return the saved plan; plan() throws Error with the file if the plan does not
  // match the step. An empty path means a plan of another rank.
  void use(SavedPlan plan, std::string path = {});
  SavedPlan latest() const;  // of the latest plan(), in file form
  // Restores the plan of that earlier report, predicted with the latest costs.
  void keep(LmsReport report, const StepPlan& plan, const Costs& costs);
  // Sets the wall time from the start of the process to the plan, in seconds.
  void set_planning_seconds(double seconds) { report_.planning_seconds = seconds; }
  std::size_t resident_bytes() const { return planner_.options().resident_bytes; }
  // Returns the bytes of the batches of real data among the resident bytes.
  std::size_t staged_bytes() const { return staged_bytes_; }

 private:
  StepPlan make(const StepPlan& unlimited, const Costs& costs, bool measured);
  void compare();

  lms::Planner planner_;
  std::string budget_source_;
  std::string idle_flags_;
  std::optional<DiskSpeed> disk_;
  std::size_t max_fused_grad_add_bytes_ = layers::any_size;
  layers::Slicing slicing_;
  std::size_t host_variable_bytes_ = 0, staged_bytes_ = 0;
  std::optional<LmsReport> whole_;  // of the step without smaller joins and slices
  double whole_share_ = 1;          // its compute seconds relative to this step's
  LmsReport report_;
  std::optional<SavedPlan> loaded_;
  std::string file_;  // source of the plan, or empty
};

// Returns costs before any step has run: nodes at the known or expected ceilings of the device, or
// at those of a typical processor; links as measured, or at the emulated speed.
Costs expected_costs(const StepPlan& plan, const Backend& backend);

// Returns the summary block after the log lines of the policy's original implementation.
std::vector<std::string> lms_lines(const LmsReport& report, int debug_level);
Json lms_json(const LmsReport& report);
Json stalls_json(const lms::Stalls& stalls);

}  // namespace cnn::bench
