#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "allreduce/progress.h"
#include "bench/plan/compile.h"
#include "bench/report/observer.h"
#include "bench/session/host_arena.h"
#include "data/feeder.h"
#include "runtime/executor.h"
#include "runtime/input_stage.h"
#include "runtime/node_observer.h"
#include "runtime/non_finite.h"
#include "runtime/variables.h"

namespace cnn::bench {

struct RankContext;

// The memory of one program on the device, and on the host for what leaves it.
struct ProgramMemory {
  std::span<std::byte> arena;   // as Executor takes it
  std::span<std::byte> staged;  // staged_bytes() of its graph
  HostArena& host;
};

// One program with its source of examples: training, evaluation or forward only.
class StepRunner {
 public:
  // feeder: null for synthetic input. References and memory must outlive the runner.
  StepRunner(Compiled compiled, const RankContext& context, Variables& variables,
             ProgramMemory memory, std::unique_ptr<data::Feeder> feeder);

  // Makes what is derived of the variables: before the first run, and after every change of them
  // that is not this runner's own.
  void prepare();

  // timeline: if given, takes the time of every step of the plan; the step is slower then.
  StepValues run(std::int64_t global_step, double learning_rate, Timeline* timeline = nullptr);
  // Goes on by another plan of the same graph, in the same arena.
  void replan(StepPlan plan);
  // As Executor::observe(), by whatever plan it goes on. The observer must outlive the runner.
  void observe(NodeObserver& observer);
  void replace_feeder(std::unique_ptr<data::Feeder> feeder);

  // When the step began whose timeline was taken last.
  std::chrono::steady_clock::time_point profile_start() const { return profile_start_; }
  // In which computing stood still for the exchange of gradients, since the start or since
  // forget_times(). Nothing if a step cannot tell, as one that a device replays.
  std::optional<double> exposed_seconds() const { return exposed_; }
  void forget_times() { exposed_ = 0; }

  // The first tensor of the latest run that is not finite: of its inputs, else as in
  // runtime/non_finite.h. Nothing: all that is left of the run is finite.
  std::optional<NonFiniteTensor> first_non_finite() const;

  // Why steps are not replayed though they should be, see Executor; the first call tells, later
  // ones are empty.
  std::string take_why_not_recorded();

  const StepPlan& plan() const { return executor_->plan(); }
  std::size_t measured_peak_bytes() const;

 private:
  // Returns the options of an executor of the plan that takes so many bytes of the host.
  ExecutorOptions options(std::size_t host_bytes);
  void place_inputs(const Graph& graph, std::span<const std::int32_t> fixed_labels);
  double feed(std::int64_t global_step, double learning_rate);  // seconds waited for input
  void feed_from(const data::Batch& batch);
  void stage_next();
  double result(std::string_view name) const;  // 0 if there is no such output
  void tell(allreduce::Phase phase, std::int64_t global_step) const;  // other ranks

  const RankContext& context_;
  Variables& variables_;
  std::span<std::byte> arena_;
  HostArena& host_;
  std::int64_t batch_ = 0;
  std::chrono::steady_clock::time_point profile_start_;
  std::optional<double> exposed_ = 0;
  std::size_t earlier_peak_ = 0;  // bytes, of plans that have been replaced
  std::unique_ptr<data::Feeder> feeder_;
  Buffer small_inputs_;  // step number, learning rate, then fixed labels: a device copies from here
  std::int32_t* step_input_ = nullptr;
  float* rate_input_ = nullptr;
  std::vector<TensorView> inputs_;
  std::unique_ptr<InputStage> stage_;           // null: the step fetches its inputs from the host
  std::vector<std::size_t> staged_;             // places in inputs_
  std::vector<TensorView> host_batch_;          // of these, where a feeder has them
  std::optional<std::size_t> images_, labels_;  // places in inputs_
  std::vector<NodeObserver*> observers_;
  bool told_why_not_recorded_ = false;
  std::optional<Executor> prologue_, executor_;
};

// Labels in [0, bound) that do not change from step to step: --synthetic_labels=fixed.
std::vector<std::int32_t> fixed_labels(std::int64_t batch, std::int32_t bound, std::uint64_t seed);

}  // namespace cnn::bench
