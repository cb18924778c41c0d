#include "bench/run/training_loop.h"

#include <algorithm>

#include "bench/plan/job.h"
#include "bench/ranks/interruption.h"
#include "bench/report/statistics.h"
#include "bench/session/team.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

constexpr std::int64_t max_reserved = 1 << 20;

}  // namespace

TrainingLoop::TrainingLoop(const Job& job, Team& team, Observers& observers,
                           const Interruption& interruption, std::int64_t global_step)
    : job_(job),
      team_(team),
      observers_(observers),
      interruption_(interruption),
      run_{.global_batch = job.batch.global,
           .warm_up = job.warm_up,
           .timed_steps = job.length.batches - global_step,
           .min_seconds = job.min_time},
      finished_{.number = -job.warm_up, .global_step = global_step},
      timing_start_(Clock::now()) {
  const std::int64_t expected = std::clamp<std::int64_t>(run_.timed_steps, 0, max_reserved);
  seconds_.reserve(static_cast<std::size_t>(expected));
  own_seconds_.reserve(static_cast<std::size_t>(expected));
}

void TrainingLoop::run() {
  try {
    run_steps();
  } catch (const std::exception& error) {
    for (const auto& observer : observers_) {
      observer->failed(so_far(), error.what());
    }
    throw;
  }
  const RunEnd end = so_far();
  const bool interrupted = interruption_.requested();
  for (const auto& observer : observers_) {
    if (interrupted) {
      observer->interrupted(end, interruption_.reason());
    } else {
      observer->end(end);
    }
  }
}

void TrainingLoop::run_steps() {
  for (const auto& observer : observers_) {
    observer->start(run_);
  }
  Next next = Next::go_on;
  while (finished_.number < run_.timed_steps && next == Next::go_on && !interruption_.requested()) {
    if (finished_.number == 0) {
      timing_starts();
      if (interruption_.requested()) {  // while waiting for its turn
        break;
      }
    }
    step(finished_.number + 1);
    if (finished_.timed()) {
      next = work_between_steps();
    }
  }
}

void TrainingLoop::timing_starts() {
  for (const auto& observer : observers_) {
    observer->timing_starts();
  }
  team_.timing_starts();
  timing_start_ = Clock::now();
}

void TrainingLoop::step(std::int64_t number) {
  for (const auto& observer : observers_) {
    observer->step_starts(number);
  }
  const bool traced = std::ranges::any_of(
      observers_, [&](const auto& observer) { return observer->wants_timeline(number); });
  finished_.learning_rate = job_.trains() ? job_.rate.at(finished_.global_step) : 0;
  finished_.values =
      team_.step(finished_.global_step, finished_.learning_rate, traced ? &timeline_ : nullptr);
  finished_.timeline = traced ? &timeline_ : nullptr;
  finished_.number = number;
  ++finished_.global_step;
  finished_.total_loss = job_.total_loss(finished_.values);
  finished_.loss = job_.reported_loss(finished_.values);
  finished_.own_values = team_.own();
  finished_.own_loss = job_.reported_loss(finished_.own_values);
  if (finished_.timed()) {
    seconds_.push_back(finished_.values.seconds);
    own_seconds_.push_back(finished_.own_values.seconds);
    finished_.step_seconds = seconds_;
    finished_.own_step_seconds = own_seconds_;
  }
  for (const auto& observer : observers_) {
    observer->step_finished(finished_);
  }
}

Next TrainingLoop::work_between_steps() {
  std::vector<Observer*> busy;
  for (const auto& observer : observers_) {
    if (observer->work_is_due(finished_)) {
      busy.push_back(observer.get());
    }
  }
  if (busy.empty()) {
    return Next::go_on;
  }
  for (const auto& observer : observers_) {
    observer->pause();
  }
  for (Observer* const observer : busy) {
    if (observer->work(finished_) == Next::stop) {
      return Next::stop;
    }
  }
  for (const auto& observer : observers_) {
    observer->resume();
  }
  return Next::go_on;
}

double TrainingLoop::own_images_per_sec() const {
  const auto own_batch = static_cast<double>(job_.batch.per_device * job_.config->num_gpus);
  return own_seconds_.empty() ? 0 : own_batch / average_seconds(own_seconds_);
}

RunEnd TrainingLoop::so_far() const {
  const auto steps = static_cast<std::int64_t>(seconds_.size());
  const double elapsed = seconds_since(timing_start_);
  return {.timed_steps = steps,
          .global_step = finished_.global_step,
          .images_per_sec = total_speed(steps, static_cast<double>(run_.global_batch), elapsed),
          .step_seconds = seconds_};
}

}  // namespace cnn::bench
