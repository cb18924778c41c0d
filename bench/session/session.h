#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/flags/json.h"
#include "bench/plan/device_memory.h"
#include "bench/plan/job.h"
#include "bench/plan/lms_plan.h"
#include "bench/plan/lms_plan_file.h"
#include "bench/plan/variable_io.h"
#include "bench/session/disk_arena.h"
#include "bench/session/host_arena.h"
#include "bench/session/restored.h"
#include "bench/session/step_runner.h"
#include "bench/session/variable_snapshot.h"
#include "runtime/variables.h"

namespace cnn::bench {

struct RankContext;
struct Sizes;

// One rank: its programs over one set of variables in one arena, and their checkpoints. Call in
// this order: construct, allocate, optionally restore, start, then run.
class Session {
 public:
  // Compiles the programs of the mode. Throws DoesNotFit before any allocation if they cannot fit,
  // with the bytes needed, the bytes available and the largest batch that fits. plan_of_first: with
  // --lms, plan_text() of the run's first rank, which this rank adopts; empty: it plans. References
  // must outlive the session.
  Session(const Job& job, const RankContext& context, const std::string& plan_of_first = {});

  // Allocates the arena and sets the variables to their starting values.
  void allocate();

  // Loads the newest checkpoint of a folder, or the one that a path names. Returns nothing if there
  // is none. Adds notes for the user to notices().
  std::optional<Restored> restore(const std::string& folder_or_path);

  // Makes the programs; data starts at the position of the given global step.
  void start(std::int64_t global_step);

  // Writes the variables to --train_dir; returns the checkpoint's path.
  std::string save(std::int64_t global_step);

  // Copies the state that save() would write; the copy may be saved while the next step runs.
  void snapshot(std::int64_t global_step, VariableSnapshot& into);
  std::size_t snapshot_bytes() const;

  // Passes the values of each saved variable to `change` and stores the changed values: of all
  // variables, or only of statistics that depend on a rank's batches.
  enum class Which : std::uint8_t { all, statistics };
  void change_saved(Which which, const std::function<void(std::span<float>)>& change);
  // Passes the values of each wanted variable of a checkpoint to `tell`. Must not run during a
  // step; overwrites what the latest step has left in the arena.
  using ReadVariable = std::function<void(const TensorInfo&, std::span<const float>)>;
  void read_saved(const std::function<bool(const TensorInfo&)>& wanted, const ReadVariable& tell);
  // Returns a hash of trainable variables and slots: equal on ranks with equal training.
  std::uint64_t weights_hash();

  // Returns the timed program: training or forward only. Evaluation mode has none.
  // NOLINTNEXTLINE(bugprone-exception-escape): it is no program's main.
  StepRunner& main() { return main_.value(); }
  // With --lms, if this rank made the plan and it moves tensors: replans with measured costs for
  // later steps and returns true. Keeps the current plan if the new one predicts no gain.
  bool replan(const Costs& costs);
  // With --lms: plan_text() returns the plan of its steps; follow() adopts a plan of another rank,
  // so that gradients have the same addresses. Throws Error if the plan is for another graph,
  // DoesNotFit if this rank has less memory.
  std::string plan_text() const;
  void follow(const std::string& plan);
  Costs expected_costs() const;
  // Returns the evaluation program, with its data rewound to the first example.
  StepRunner& evaluation();

  const StepPlan& plan() const;  // of the timed program, else of the evaluation
  Json plan_json() const;        // section "plan" of the result file
  // Counts as the seconds of planning, if there is a plan of --lms, what has passed until it.
  void set_planning_seconds(double seconds) {
    if (lms_) {
      lms_->set_planning_seconds(seconds);
    }
  }
  const LmsReport* lms() const { return lms_ ? &lms_->report() : nullptr; }  // null without --lms
  const NetworkFacts& facts() const { return facts_; }
  Layout layout() const { return layout_; }
  layers::Fusion fusion() const { return fusion_; }          // the level that the plan reached
  const layers::NormForms& norms() const { return norms_; }  // with Fusion::conv
  const DeviceMemory& memory() const { return memory_; }     // of the current plans
  std::size_t workspace_bytes() const;                       // maximum over the nodes
  // Returns the largest batch that fits in the backend's memory without --lms; 0 if no example
  // fits. Compiles further graphs.
  std::int64_t largest_batch() const;
  // Return the measured bytes of variables, staged inputs and the arena parts given to kernels: by
  // the current plans of all programs, by that of the timed program alone, and by the plans that
  // replan() or follow() has replaced, if any.
  std::size_t measured_peak_bytes() const;
  std::size_t measured_step_peak_bytes() const;
  std::optional<std::size_t> replaced_peak_bytes() const;
  const std::vector<std::string>& notices() const { return notices_; }
  // Returns notes that arose in its steps since the last call.
  std::vector<std::string> take_notes();

 private:
  Session(const Job& job, const RankContext& context, const std::string& plan_of_first,
          const Sizes& sizes);

  void plan_lms(const std::string& plan_of_first);
  data::SaveOptions save_options(std::int64_t global_step) const;
  void plan_from(const std::string& file);  // of --lms_plan_file
  StepPlan plan_like(const std::string& plan_of_first, bool measured);
  void adopt(StepPlan next);             // for later steps
  PlanOrigin origin() const;             // of the training step
  SavedPlan saved_plan() const;          // the current plan
  void save_plan() const;                // to --lms_plan_out if given
  std::string refusal_with_lms() const;  // the message of DoesNotFit
  std::span<std::byte> arena() const;
  // staged_before: bytes staged by other programs, before this program's.
  ProgramMemory memory_of(const Compiled& program, std::size_t staged_before);
  void prefault(std::span<std::byte> memory) const;
  void prepare();
  std::unique_ptr<data::Feeder> feed(Phase phase, std::int64_t first_step) const;

  const Job& job_;
  const RankContext& context_;
  std::optional<std::size_t> plan_bucket_bytes_;  // of updates, if a plan sets it
  Programs programs_;                             // until start()
  std::optional<Variables> variables_;
  std::optional<PlanFile> plan_out_;
  std::optional<LmsPlanner> lms_;
  std::optional<StepPlan> unlimited_;  // the main program's step before --lms
  NetworkFacts facts_;
  Layout layout_ = Layout::nchw;
  layers::Fusion fusion_{};
  layers::NormForms norms_;
  DeviceMemory memory_;
  std::size_t reserved_arena_ = 0;    // bytes: for the current and possible later plans
  std::size_t prefaulted_arena_ = 0;  // bytes: of the largest plan so far
  Buffer storage_;                    // variables on the device, staged inputs, then the arena
  Buffer host_variables_;             // empty if no variable lies on the host
  std::optional<HostArena> host_;
  std::optional<DiskArena> disk_;
  std::optional<VariableIo> io_;
  std::optional<StepRunner> main_, evaluation_;
  std::vector<std::string> notices_;
};

}  // namespace cnn::bench
