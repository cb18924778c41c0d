#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/timeline.h"

namespace cnn::bench {

// The results of one step.
struct StepValues {
  double seconds = 0;           // wall time, including the wait for input
  double input_wait = 0;        // seconds
  double base_loss = 0;         // mean over the batch; 0 in forward only
  double l2 = 0;                // sum of squares / 2 before the update; 0 outside training
  double top_1 = 0, top_5 = 0;  // fractions of the batch, if the graph counts them
};

// Describes a run before its first step.
struct RunStart {
  std::int64_t global_batch = 0;
  std::int64_t warm_up = 0;      // steps before the timed ones
  std::int64_t timed_steps = 0;  // still to run; 0 or less if a checkpoint is past the end
  double min_seconds = 0;        // of timed steps, after which the run ends early; 0: no limit
};

struct FinishedStep {
  std::int64_t number = 0;       // timed steps count from 1; the warm-up ends with 0
  std::int64_t global_step = 0;  // global step after it
  double learning_rate = 0;
  StepValues values;
  double total_loss = 0;
  double loss = 0;                       // the reported loss
  std::span<const double> step_seconds;  // all timed steps so far
  // Values of this process alone if other processes take part in the step; otherwise the same
  // values.
  StepValues own_values;
  double own_loss = 0;
  std::span<const double> own_step_seconds;
  const Timeline* timeline = nullptr;  // null unless an observer wants it

  bool timed() const { return number > 0; }
};

// Describes a run after its last step.
struct RunEnd {
  std::int64_t timed_steps = 0;
  std::int64_t global_step = 0;
  double images_per_sec = 0;  // since the start of the first timed step
  std::span<const double> step_seconds;
};

enum class Next : std::uint8_t { go_on, stop };

// An observer of the training loop: it prints, writes, counts or saves. The run notifies all
// observers of an event in the order of its list. Their exceptions end the run.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void start(const RunStart&) {}
  virtual void timing_starts() {}  // the warm-up has ended
  // Returns whether to time every plan step of this training step, which then runs slower.
  virtual bool wants_timeline(std::int64_t) const { return false; }
  virtual void step_starts(std::int64_t /*number*/) {}
  virtual void step_finished(const FinishedStep&) {}

  // Long work, such as a checkpoint: if any observer's work is due after a timed step, all
  // observers get pause() before and resume() after it. Next::stop ends the run.
  virtual bool work_is_due(const FinishedStep&) const { return false; }
  virtual Next work(const FinishedStep&) { return Next::go_on; }
  virtual void pause() {}
  virtual void resume() {}

  // Exactly one of these is the last event: all steps ran (or an observer said stop), the user
  // interrupted the run, or an exception with this what() ended it.
  virtual void end(const RunEnd&) {}
  virtual void interrupted(const RunEnd& end, std::string_view /*by*/) { this->end(end); }
  virtual void failed(const RunEnd&, std::string_view /*what*/) {}
};

}  // namespace cnn::bench
