#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/timeline.h"

namespace cnn::bench {

// The results of one step.
struct StepValues {
  double seconds = 0;           // wall time, the wait for input included
  double input_wait = 0;        // seconds
  double base_loss = 0;         // mean over the batch; 0 in forward only
  double l2 = 0;                // sum of squares / 2 before the update; 0 outside training
  double top_1 = 0, top_5 = 0;  // fractions of the batch, where the graph counts them
};

// A run before its first step.
struct RunStart {
  std::int64_t global_batch = 0;
  std::int64_t warm_up = 0;      // steps before the timed ones
  std::int64_t timed_steps = 0;  // that are to come; 0 or less if a checkpoint stands past the end
  double min_seconds = 0;  // of timed steps, after which it ends before timed_steps; 0: it does not
};

struct FinishedStep {
  std::int64_t number = 0;       // timed steps count from 1; those of the warm-up end with 0
  std::int64_t global_step = 0;  // where the run stands after it
  double learning_rate = 0;
  StepValues values;
  double total_loss = 0;
  double loss = 0;                       // as reported
  std::span<const double> step_seconds;  // of all timed steps so far
  // Of this process alone, where others take part in the step; else the same.
  StepValues own_values;
  double own_loss = 0;
  std::span<const double> own_step_seconds;
  const Timeline* timeline = nullptr;  // if an observer wanted it

  bool timed() const { return number > 0; }
};

// A run after its last step.
struct RunEnd {
  std::int64_t timed_steps = 0;
  std::int64_t global_step = 0;
  double images_per_sec = 0;  // over all that happened since the first timed step began
  std::span<const double> step_seconds;
};

enum class Next : std::uint8_t { go_on, stop };

// Somebody who hears what the training loop does: prints, writes, counts, saves. All are told of
// an event one after the other, in the order in which the run lists them. An exception from them
// ends the run.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void start(const RunStart&) {}
  virtual void timing_starts() {}  // the warm-up is over
  // Is the time of every step of the plan wanted of the step of this number? It runs slower then.
  virtual bool wants_timeline(std::int64_t) const { return false; }
  virtual void step_starts(std::int64_t /*number*/) {}
  virtual void step_finished(const FinishedStep&) {}

  // Work as long as steps are, such as a checkpoint: where any is due after a timed step, all are
  // told of the pause before and of the end of the pause after. Whoever says stop ends the run.
  virtual bool work_is_due(const FinishedStep&) const { return false; }
  virtual Next work(const FinishedStep&) { return Next::go_on; }
  virtual void pause() {}
  virtual void resume() {}

  // One of these three is the last event: all steps ran (or someone said stop), the run was asked
  // to end before, or what() ended it.
  virtual void end(const RunEnd&) {}
  virtual void interrupted(const RunEnd& end, std::string_view /*by*/) { this->end(end); }
  virtual void failed(const RunEnd&, std::string_view /*what*/) {}
};

}  // namespace cnn::bench
