#include "bench/run/training_loop.h"

#include <fmt/format.h>
#include <fstream>

#include "bench/report/benchmark_log.h"
#include "bench/report/reporter.h"
#include "bench/report/statistics.h"
#include "bench/report/trace_file.h"
#include "bench/run/evaluator.h"
#include "bench/run/job.h"
#include "bench/run/session.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

constexpr std::int64_t traced_step = -2;  // as tf_cnn_benchmarks: the last but one of the warm-up

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

TrainingLoop::TrainingLoop(const Job& job, Session& session, Console& console, ResultRecord& record,
                           std::int64_t global_step)
    : job_(job),
      session_(session),
      console_(console),
      record_(record),
      global_step_(global_step),
      last_(job.length.batches - global_step),
      timing_start_(Clock::now()),
      last_save_(Clock::now()) {
  seconds_.reserve(static_cast<std::size_t>(std::max<std::int64_t>(last_, 0)));
}

double TrainingLoop::total_loss(const StepValues& values) const {
  return values.base_loss + job_.config->weight_decay * values.l2;
}

double TrainingLoop::reported_loss(const StepValues& values) const {
  return job_.config->loss_type_to_report == "base_loss" ? values.base_loss : total_loss(values);
}

StepValues TrainingLoop::step(std::int64_t local_step) {
  rate_ = job_.trains() ? job_.rate.at(global_step_) : 0;
  const bool traced = !job_.config->trace_file.empty() && local_step == traced_step;
  Timeline timeline;
  const StepValues values = session_.main().run(global_step_, rate_, traced ? &timeline : nullptr);
  if (traced) {
    console_.print(trace_line(job_.config->trace_file));
    write_trace(job_.config->trace_file, session_.plan(), timeline);
  }
  ++global_step_;
  return values;
}

void TrainingLoop::run() {
  if (job_.warm_up !=
      warm_up_batches(job_.config->num_warmup_batches, job_.config->autotune_threshold)) {
    console_.print(warm_up_line(job_.warm_up));
  }
  console_.print(running_warm_up_line);
  bool stop = false;
  std::int64_t local_step = -job_.warm_up;
  const Clock::time_point warm_up_start = Clock::now();
  for (; local_step < last_ && !stop; ++local_step) {
    if (local_step == 0) {
      record_.start.value().warm_up = seconds_between(warm_up_start, Clock::now());
      begin_timing();
    }
    const StepValues values = step(local_step);
    if (local_step < 0) {
      record_.warm_up_losses.push_back(total_loss(values));
      continue;
    }
    const std::int64_t finished = local_step + 1;
    record_step(finished, values);
    display(finished, values);
    save_if_due(finished);
    stop = evaluate_if_due(finished);
  }
  finish(std::max<std::int64_t>(local_step, 0), stop);
}

void TrainingLoop::begin_timing() {
  console_.print(done_warm_up_line);
  const bool accuracies = job_.config->print_training_accuracy || job_.mode == Mode::forward_only;
  console_.print(title_line(job_.config->loss_type_to_report, accuracies));
  if (TelemetrySource* const source = session_.telemetry()) {
    telemetry_.emplace(*source);
    resume_telemetry();
  }
  timing_start_ = Clock::now();
}

void TrainingLoop::pause_telemetry() {
  if (telemetry_) {
    telemetry_->pause();
  }
}

void TrainingLoop::resume_telemetry() {
  if (telemetry_) {
    telemetry_->resume();
  }
}

void TrainingLoop::record_step(std::int64_t number, const StepValues& values) {
  seconds_.push_back(values.seconds);
  ResultStep row{.step = number,
                 .seconds = values.seconds,
                 .images_per_sec = static_cast<double>(job_.batch) / values.seconds,
                 .loss = reported_loss(values),
                 .base_loss = values.base_loss,
                 .total_loss = total_loss(values),
                 .learning_rate = rate_,
                 .input_wait_seconds = values.input_wait};
  if (job_.config->print_training_accuracy || job_.mode == Mode::forward_only) {
    row.top_1 = values.top_1;
    row.top_5 = values.top_5;
  }
  record_.steps.push_back(row);
}

void TrainingLoop::display(std::int64_t number, const StepValues& values) {
  const Config& config = *job_.config;
  const auto batch = static_cast<double>(job_.batch);
  if (!is_displayed(number, config.display_every)) {
    console_.progress(progress_line({.done = number,
                                     .total = last_,
                                     .average_seconds = average_seconds(seconds_),
                                     .images_per_second = batch / average_seconds(seconds_)}));
    return;
  }
  std::optional<Accuracy> accuracy;
  if (config.print_training_accuracy || job_.mode == Mode::forward_only) {
    accuracy = Accuracy{values.top_1, values.top_5};
  }
  const Speed now = speed(seconds_, batch, config.display_perf_ewma.value_or(0));
  console_.print(step_line(number, now, reported_loss(values), accuracy));
  if (config.benchmark_log_dir) {
    append_metrics(*config.benchmark_log_dir, step_metrics(number, now.mean, accuracy),
                   std::chrono::system_clock::now());
  }
}

void TrainingLoop::save_if_due(std::int64_t finished_steps) {
  const Config& config = *job_.config;
  if (!config.train_dir) {
    return;
  }
  const int every = config.save_model_steps.value_or(0);
  const bool by_steps = every > 0 && finished_steps % every == 0;
  const bool by_time = config.save_model_secs > 0 &&
                       seconds_between(last_save_, Clock::now()) >= config.save_model_secs;
  if (by_steps || by_time) {
    pause_telemetry();
    save();
    resume_telemetry();
  }
}

void TrainingLoop::save() {
  if (saved_step_ != global_step_) {
    session_.save(global_step_);
    saved_step_ = global_step_;
    last_save_ = Clock::now();
  }
}

bool TrainingLoop::evaluate_if_due(std::int64_t finished_steps) {
  if (job_.mode != Mode::training_and_evaluation ||
      !job_.eval_schedule.due(finished_steps, last_)) {
    return false;
  }
  pause_telemetry();
  console_.print(eval_start_line(global_step_));
  record_.evaluation.push_back(evaluate(job_, session_, console_, global_step_));
  const double accuracy = record_.evaluation.back().top_1;
  const std::optional<double>& wanted = job_.config->stop_at_top_1_accuracy;
  if (wanted && accuracy >= *wanted) {
    console_.print(early_stop_line(*wanted));
    return true;
  }
  console_.print(resuming_line);
  resume_telemetry();
  return false;
}

void TrainingLoop::finish(std::int64_t timed_steps, bool stopped_early) {
  const double elapsed = seconds_between(timing_start_, Clock::now());
  const auto batch = static_cast<double>(job_.batch);
  const double total = total_speed(timed_steps, batch, elapsed);
  if (telemetry_) {
    record_.telemetry = telemetry_->finish(timed_steps * job_.batch);
  }
  if (timed_steps == 0) {
    console_.note(fmt::format(
        "nothing was timed: the checkpoint stands at global step {} and --num_batches={} counts "
        "from step 0; ask for more batches",
        global_step_, job_.length.batches));
  } else {
    const Speed all = speed(seconds_, batch, job_.config->display_perf_ewma.value_or(0));
    record_.summary = ResultSummary{.images_per_sec = all.mean,
                                    .uncertainty = all.uncertainty,
                                    .jitter = all.jitter,
                                    .total_images_per_sec = total,
                                    .median_step_seconds = median(seconds_)};
  }
  if (job_.mode != Mode::training_and_evaluation) {
    console_.print(total_lines(total));
  } else {
    console_.print(done_training_line);
    if (!stopped_early) {
      console_.print(final_eval_line(global_step_));
      record_.evaluation.push_back(evaluate(job_, session_, console_, global_step_));
    }
  }
  if (job_.config->benchmark_log_dir && timed_steps > 0) {
    append_metrics(*job_.config->benchmark_log_dir, {end_metric(timed_steps, total)},
                   std::chrono::system_clock::now());
  }
  if (job_.config->train_dir && !job_.config->freeze_when_forward_only) {
    save();
  }
}

}  // namespace cnn::bench
