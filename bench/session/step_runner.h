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
#include "bench/session/disk_arena.h"
#include "bench/session/host_arena.h"
#include "data/feeder.h"
#include "runtime/executor.h"
#include "runtime/input_stage.h"
#include "runtime/node_observer.h"
#include "runtime/non_finite.h"
#include "runtime/variables.h"

namespace cnn::bench {

struct RankContext;

// The memory of one program on the device, and on the host for swapped tensors.
struct ProgramMemory {
  std::span<std::byte> arena;   // see Executor
  std::span<std::byte> staged;  // staged_bytes() of the graph
  HostArena& host;
  DiskArena* disk = nullptr;  // null: no plan stores tensors
};

// One program with its source of examples: training, evaluation or forward only.
class StepRunner {
 public:
  // feeder: null for synthetic input. References and memory must outlive the runner.
  StepRunner(Compiled compiled, const RankContext& context, Variables& variables,
             ProgramMemory memory, std::unique_ptr<data::Feeder> feeder);

  // Computes the derived variables: call before the first run, and after every change of variables
  // by others than this runner.
  void prepare();

  // timeline: if given, receives the time of every plan step; the step is then slower.
  StepValues run(std::int64_t global_step, double learning_rate, Timeline* timeline = nullptr);
  // Continues with another plan of the same graph, in the same arena.
  void replan(StepPlan plan);
  // Like Executor::observe(), across replans. The observer must outlive the runner.
  void observe(NodeObserver& observer);
  bool is_observed() const { return !observers_.empty(); }
  // Like Executor::stop_recording(), across replans.
  void stop_recording();
  void replace_feeder(std::unique_ptr<data::Feeder> feeder);

  // Returns the start of the latest step with a timeline.
  std::chrono::steady_clock::time_point profile_start() const { return profile_start_; }
  // Returns the exposed communication in seconds, since the start or since forget_times(). Nothing
  // if a step cannot measure it, such as one that a device replays.
  std::optional<double> exposed_seconds() const { return exposed_; }
  void forget_times() { exposed_ = 0; }

  // Returns the first non-finite tensor of the latest run: of its inputs, else as in
  // runtime/non_finite.h. Nothing: everything still in memory is finite.
  std::optional<NonFiniteTensor> first_non_finite() const;

  // Returns why steps are not replayed although they should be, see Executor; only the first call
  // returns a text.
  std::string take_why_not_recorded();

  const StepPlan& plan() const { return executor_->plan(); }
  // Return bytes of the arena that the plan and its prologue take: planned, the least for any
  // placement, and measured in the steps by this plan.
  std::size_t device_bytes() const;
  std::size_t lower_bound_bytes() const;
  std::size_t measured_peak_bytes() const;
  // Returns the measured bytes of plans that replan() has replaced, if any.
  std::optional<std::size_t> replaced_peak_bytes() const { return replaced_peak_; }

 private:
  ExecutorOptions options(const MemoryPlan& memory);
  void place_inputs(const Graph& graph, std::span<const std::int32_t> fixed_labels);
  double feed(std::int64_t global_step, double learning_rate);  // returns seconds waited for input
  void feed_from(const data::Batch& batch);
  void stage_next();
  double result(std::string_view name) const;  // 0 if the output does not exist
  // Publishes progress to other ranks.
  void tell(allreduce::Phase phase, std::int64_t global_step) const;

  const RankContext& context_;
  Variables& variables_;
  std::span<std::byte> arena_;
  HostArena& host_;
  DiskArena* disk_;
  std::int64_t batch_ = 0;
  std::chrono::steady_clock::time_point profile_start_;
  std::optional<double> exposed_ = 0;
  std::optional<std::size_t> replaced_peak_;
  std::unique_ptr<data::Feeder> feeder_;
  // Step number, learning rate, then fixed labels, as source of device copies.
  Buffer small_inputs_;
  std::int32_t* step_input_ = nullptr;
  float* rate_input_ = nullptr;
  std::vector<TensorView> inputs_;
  std::unique_ptr<InputStage> stage_;           // null: the step fetches its inputs from the host
  std::vector<std::size_t> staged_;             // indices in inputs_
  std::vector<TensorView> host_batch_;          // of the staged inputs, in the feeder's batch
  std::optional<std::size_t> images_, labels_;  // indices in inputs_
  std::vector<NodeObserver*> observers_;
  bool records_ = true;  // as far as the backend's options allow it
  bool told_why_not_recorded_ = false;
  std::optional<Executor> prologue_, executor_;
};

// Returns labels in [0, bound) that are equal in every step: --synthetic_labels=fixed.
std::vector<std::int32_t> fixed_labels(std::int64_t batch, std::int32_t bound, std::uint64_t seed);

}  // namespace cnn::bench
