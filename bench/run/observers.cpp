#include "bench/run/observers.h"

#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "bench/flags/conditions.h"
#include "bench/flags/fault_spec.h"
#include "bench/plan/job.h"
#include "bench/ranks/interruption.h"
#include "bench/ranks/launcher.h"
#include "bench/ranks/rank_context.h"
#include "bench/report/benchmark_log.h"
#include "bench/report/disturbance_record.h"
#include "bench/report/divergence.h"
#include "bench/report/event_file.h"
#include "bench/report/fault_watch.h"
#include "bench/report/forward_check.h"
#include "bench/report/input_record.h"
#include "bench/report/minimum_time.h"
#include "bench/report/step_printer.h"
#include "bench/report/step_record.h"
#include "bench/report/telemetry_record.h"
#include "bench/report/trace_file.h"
#include "bench/run/checkpoints.h"
#include "bench/run/comm_dump.h"
#include "bench/run/evaluator.h"
#include "bench/run/hash_file.h"
#include "bench/run/lms_observer.h"
#include "bench/run/lms_stats.h"
#include "bench/run/lms_trace.h"
#include "bench/run/rank_trace.h"
#include "bench/run/summaries.h"
#include "bench/run/time_slicer.h"
#include "bench/session/input.h"
#include "bench/session/op_profile.h"
#include "bench/session/session.h"
#include "bench/session/team.h"

namespace cnn::bench {
namespace {

PrinterOptions printer_options(const Job& job) {
  const Config& config = *job.config;
  PrinterOptions options{.display_every = config.report.display_every,
                         .ewma_weight = config.report.perf_ewma.value_or(0),
                         .accuracies = job.shows_accuracies(),
                         .totals = job.mode != Mode::training_and_evaluation,
                         .loss_type = std::string(word_of(config.report.loss_type)),
                         .asked_batches = job.length.batches};
  const bool speaks_for_itself = config.variable_update == VariableUpdate::horovod ||
                                 config.variable_update == VariableUpdate::ddl ||
                                 config.variable_update == VariableUpdate::independent ||
                                 config.variable_update == VariableUpdate::distributed_replicated ||
                                 config.variable_update == VariableUpdate::collective_all_reduce;
  const std::int64_t own = job.batch.per_device * config.num_gpus;
  if (speaks_for_itself && own != job.batch.global) {
    options.own_batch = own;
  }
  if (job.warm_up != warm_up_batches(config.size.warm_up_batches, config.size.autotune_threshold)) {
    options.rounded_warm_up = job.warm_up;
  }
  return options;
}

void add_lms_observers(const Observed& run, Observers& all) {
  const LmsFlags& flags = run.job.config->lms;
  all.push_back(
      std::make_unique<LmsObserver>(run.team, run.console, run.result, run.has_plan_file));
  if (flags.trace) {
    all.push_back(std::make_unique<LmsTrace>(*flags.trace, run.team.first()));
  }
  if (flags.stats || flags.stats_average) {
    all.push_back(std::make_unique<LmsStats>(run.job, run.team.first(), run.console));
  }
}

// Prints notes that arise in steps, mostly in the first two.
class LateNotes final : public Observer {
 public:
  LateNotes(Team& team, Console& console) : team_(team), console_(console) {}
  void step_finished(const FinishedStep& /*step*/) override {
    for (const std::string& note : team_.take_notes()) {
      console_.note(note);
    }
  }

 private:
  Team& team_;
  Console& console_;
};

void note_hashes(const Observed& run) {
  if (run.team.hashed_tensors() != nullptr) {
    const bool replays = run.context.backend.gpu && run.context.backend.steps.record;
    run.console.note(fmt::format(
        "hashes: a step takes longer by the hashes of its tensors{}: do not compare its speed",
        replays ? ", and is enqueued node by node, not replayed as a CUDA graph" : ""));
  }
}

void add_rank_observers(const Observed& run, Observers& all) {
  const Config& config = *run.job.config;
  if (config.comm.dump_iter > 0 && run.team.exchange() != nullptr) {
    all.push_back(std::make_unique<CommDump>(run.team, run.console, config.comm.dump_iter));
  }
  if (config.report.hash_file && run.team.hashed_tensors() != nullptr) {
    all.push_back(std::make_unique<HashFile>(run.job, run.team, run.result));
  }
  if (config.comm.fault && (run.team.exchange() != nullptr || flips_a_bit(config.comm.fault))) {
    all.push_back(std::make_unique<FaultWatch>(run.console, *config.comm.fault));
  }
}

// Returns null for --forward_only on a checkpoint. Its variables are the same after all steps but
// without an optimizer's slots: saving them with a higher step would spoil a later training.
std::unique_ptr<Observer> checkpoint_observer(const Observed& run,
                                              const std::optional<Restored>& restored) {
  const Config& config = *run.job.config;
  if (run.job.mode == Mode::forward_only && restored) {
    if (config.checkpoint.save_secs > 0 || config.checkpoint.save_steps.value_or(0) > 0) {
      run.console.note(fmt::format(
          "--forward_only changes no variables and saves none beside {}: --save_model_secs and "
          "--save_model_steps have no effect",
          restored->path));
    }
    return nullptr;
  }
  return std::make_unique<Checkpoints>(
      run.team, run.console,
      Checkpoints::Options{
          .every_steps = config.checkpoint.save_steps.value_or(0),
          .every_seconds = config.checkpoint.save_secs,
          .kill_delay = kill_delay(),
          .asked_to_end = [] { return Interruption::signal_came(); },
          .restored_step = restored ? std::optional(restored->global_step) : std::nullopt});
}

std::unique_ptr<Observer> input_observer(const Observed& run) {
  const int devices = run.job.config->num_gpus;
  return std::make_unique<InputRecord>(
      *run.job.train_data,
      InputRecord::Options{.threads = input_threads(run.job, run.context) * devices,
                           .cores = static_cast<int>(std::thread::hardware_concurrency()),
                           .batch = run.job.batch.per_device * devices},
      run.console, run.result);
}

std::unique_ptr<Observer> trace_observer(const Observed& run) {
  const std::string& file = run.job.config->report.trace_file;
  if (run.job.ranks > 1) {
    return std::make_unique<RankTrace>(run.console, file, run.team);
  }
  return std::make_unique<TraceWriter>(run.console, file, run.team.first().plan());
}

std::unique_ptr<Observer> summaries_observer(const Observed& run) {
  if (run.team.samples() != nullptr && run.context.backend.gpu &&
      run.context.backend.steps.record) {
    run.console.note(
        "--summary_verbosity=2 and 3 look at gradients within the step: steps are enqueued node by "
        "node, not replayed as a CUDA graph; do not compare their speed");
  }
  return std::make_unique<Summaries>(
      run.job, run.team,
      std::make_unique<EventFile>("--train_dir", *run.job.config->checkpoint.train_dir));
}

// Adds records of every step, and of the machine's state meanwhile.
void add_step_records(const Observed& run, const StepRecord::Options& options, Observers& all) {
  std::function<std::optional<std::uint64_t>()> throttled;
  if (run.context.backend.telemetry) {
    auto telemetry =
        std::make_unique<TelemetryRecord>(*run.context.backend.telemetry, run.console, run.result);
    throttled = [&record = *telemetry] { return record.throttled_samples(); };
    all.push_back(std::move(telemetry));
  }
  all.push_back(std::make_unique<StepRecord>(run.result, options));
  all.push_back(std::make_unique<DisturbanceRecord>(run.context.backend.processors.cpus,
                                                    std::move(throttled), run.console, run.result));
}

}  // namespace

Observers make_observers(const Observed& run, const std::optional<Restored>& restored) {
  const Job& job = run.job;
  const Config& config = *job.config;
  const double ewma_weight = config.report.perf_ewma.value_or(0);
  const bool accuracies = job.shows_accuracies();
  Observers all;
  note_hashes(run);
  const auto add = [&all](std::unique_ptr<Observer> observer) {
    all.push_back(std::move(observer));
  };
  if (run.turns != nullptr) {
    add(std::make_unique<TimeSlicer>(*run.turns, run.result));
  }
  add_step_records(run, {.accuracies = accuracies, .ewma_weight = ewma_weight}, all);
  if (job.train_data && config.data.row().has_image_files) {
    add(input_observer(run));
  }
  if (run.profile != nullptr) {
    add(std::make_unique<ProfileRecord>(*run.profile, run.result));
  }
  if (run.traces) {
    add(trace_observer(run));
  }
  if (run.team.first().lms() != nullptr) {
    add_lms_observers(run, all);
  }
  add_rank_observers(run, all);
  add(std::make_unique<LateNotes>(run.team, run.console));
  add(std::make_unique<StepPrinter>(run.console, printer_options(job)));
  const auto find_non_finite = [&team = run.team] {
    return team.first_non_finite(Team::Which::main);
  };
  if (job.trains()) {
    add(std::make_unique<DivergenceWatch>(run.console, run.result, find_non_finite,
                                          job.config->report.check_finite_step));
  } else {
    add(std::make_unique<ForwardCheck>(run.console, run.result, find_non_finite));
  }
  if (writes_summaries(config)) {
    add(summaries_observer(run));
  }
  if (job.keeps_checkpoints()) {
    if (auto checkpoints = checkpoint_observer(run, restored)) {
      add(std::move(checkpoints));
    }
  }
  if (job.mode == Mode::training_and_evaluation) {
    const Evaluator evaluator(job, run.team, run.console, run.result, run.interruption);
    add(std::make_unique<TrainingEvaluation>(job, evaluator, run.console));
  }
  if (config.report.log_dir) {
    add(std::make_unique<MetricLog>(*config.report.log_dir,
                                    MetricLog::Options{.display_every = config.report.display_every,
                                                       .ewma_weight = ewma_weight,
                                                       .accuracies = accuracies}));
  }
  if (job.min_time > 0) {
    add(std::make_unique<MinimumTime>(job.min_time));
  }
  return all;
}

}  // namespace cnn::bench
