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
#include "bench/session/host_arena.h"
#include "bench/session/restored.h"
#include "bench/session/step_runner.h"
#include "bench/session/variable_snapshot.h"
#include "runtime/variables.h"

namespace cnn::bench {

struct RankContext;
struct Sizes;

// One rank: its programs over one set of variables in one arena, and their checkpoints. Use it in
// the order: construct, allocate, restore if wanted, start, then run.
class Session {
 public:
  // Compiles what the mode needs. Throws DoesNotFit before anything is allocated if it cannot fit,
  // saying how much is needed, how much there is and the largest batch that fits. plan_of_first:
  // with --lms, plan_text() of the run's first rank, by which this one goes; empty: it plans.
  // References must outlive it.
  Session(const Job& job, const RankContext& context, const std::string& plan_of_first = {});

  // Allocates the arena and sets the variables to their starting values.
  void allocate();

  // Loads the newest checkpoint of a folder, or the one a path names. Nothing if there is none.
  // Notes for the user about it are added to notices().
  std::optional<Restored> restore(const std::string& folder_or_path);

  // Makes the programs; the data position is that of the given global step.
  void start(std::int64_t global_step);

  // Writes the variables to --train_dir; returns the checkpoint's path.
  std::string save(std::int64_t global_step);

  // Copies what save() would write; the step after it need not be over when the copy is saved.
  void snapshot(std::int64_t global_step, VariableSnapshot& into);
  std::size_t snapshot_bytes() const;

  // Gives the values of each saved variable, or of those only that follow the batches of a rank, to
  // `change`, and keeps what it makes of them.
  enum class Which : std::uint8_t { all, statistics };
  void change_saved(Which which, const std::function<void(std::span<float>)>& change);
  // Gives `tell` the values of each wanted variable that a checkpoint holds. Not for use while a
  // step runs, and what the latest step has left in the arena is lost.
  using ReadVariable = std::function<void(const TensorInfo&, std::span<const float>)>;
  void read_saved(const std::function<bool(const TensorInfo&)>& wanted, const ReadVariable& tell);
  // Returns a hash of trainable variables and slots: equal for ranks that have trained alike.
  std::uint64_t weights_hash();

  // The timed program: training or forward only. There is none in evaluation mode.
  // NOLINTNEXTLINE(bugprone-exception-escape): it is no program's main.
  StepRunner& main() { return main_.value(); }
  // With --lms, of a plan that was made here and moves something: makes it anew by measured costs,
  // for the steps from here on, and returns true. The present one stays if the new one promises
  // nothing.
  bool replan(const Costs& costs);
  // With --lms: the plan of its steps, for other ranks; these go on by it. Their gradients then lie
  // at the same places. Throws Error where it is for another graph, DoesNotFit where the rank has
  // less memory.
  std::string plan_text() const;
  void follow(const std::string& plan);
  Costs expected_costs() const;
  // The evaluation program, its data rewound to the first example.
  StepRunner& evaluation();

  const StepPlan& plan() const;  // of the timed program, else of the evaluation
  Json plan_json() const;        // section "plan" of the result file
  const LmsReport* lms() const { return lms_ ? &lms_->report() : nullptr; }  // null without --lms
  const NetworkFacts& facts() const { return facts_; }
  Layout layout() const { return layout_; }
  layers::Fusion fusion() const { return fusion_; }          // as far as the plan got
  const layers::NormForms& norms() const { return norms_; }  // with Fusion::conv
  const DeviceMemory& memory() const { return memory_; }     // all that the device gives
  std::size_t workspace_bytes() const;                       // the largest of a node
  // That fits in the backend's memory without --lms; 0 if not even one example does. Compiles some
  // others.
  std::int64_t largest_batch() const;
  std::size_t measured_peak_bytes() const;  // variables and what kernels were handed of the arena
  const std::vector<std::string>& notices() const { return notices_; }
  // Returns what has come up in its steps since the last call.
  std::vector<std::string> take_notes();

 private:
  Session(const Job& job, const RankContext& context, const std::string& plan_of_first,
          const Sizes& sizes);

  void plan_lms(const std::string& plan_of_first);
  data::SaveOptions save_options(std::int64_t global_step) const;
  void plan_from(const std::string& file);  // of --lms_plan_file
  StepPlan plan_like(const std::string& plan_of_first, bool measured);
  void adopt(StepPlan next);                   // for the steps from here on
  PlanOrigin origin() const;                   // of the training step
  SavedPlan saved_plan() const;                // by which it goes
  void save_plan() const;                      // where --lms_plan_out asks for it
  std::string what_fits(bool with_lms) const;  // for who asked for more than fits
  void check_memory() const;
  std::span<std::byte> arena() const;
  // Before the program's own: bytes of what other programs stage.
  ProgramMemory memory_of(const Compiled& program, std::size_t staged_before);
  void secure(std::span<std::byte> memory) const;
  void prepare();
  std::unique_ptr<data::Feeder> feed(Phase phase, std::int64_t first_step) const;

  const Job& job_;
  const RankContext& context_;
  std::optional<std::size_t> plan_bucket_bytes_;  // of updates, if a plan says it
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
  std::size_t reserved_arena_ = 0;  // bytes: of the plans so far and of those that may come
  Buffer storage_;                  // variables, what is staged, then the arena
  std::optional<HostArena> host_;
  std::optional<VariableIo> io_;
  std::optional<StepRunner> main_, evaluation_;
  std::vector<std::string> notices_;
};

}  // namespace cnn::bench
