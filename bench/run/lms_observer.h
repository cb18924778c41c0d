#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/flags/json.h"
#include "bench/report/console.h"
#include "bench/report/observer.h"
#include "lms/stalls.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::bench {

class Session;
class Team;

// The seconds of nodes, copies and waits in some steps, from the executor's timelines.
class MeasuredCosts {
 public:
  void add(const StepPlan& plan, const Timeline& timeline);
  bool is_empty() const { return steps_ == 0; }
  // Returns the median of each node; for directions without copies, the link of `expected`.
  Costs costs(const Costs& expected) const;

  // The total copies of a plan in one direction.
  struct Copies {
    double bytes = 0, seconds = 0;
    std::optional<double> rate() const;  // bytes per second; nothing if almost nothing was copied
  };
  const Copies& out() const { return out_; }  // of all steps
  const Copies& in() const { return in_; }
  const Copies& stored() const { return stored_; }  // on the disk
  const Copies& loaded() const { return loaded_; }
  lms::Stalls stalls() const;  // mean per step
  double per_step(double sum) const { return sum / static_cast<double>(steps_); }

 private:
  std::int64_t steps_ = 0;
  std::vector<std::vector<double>> seconds_;  // by NodeId
  Copies out_, in_, stored_, loaded_;
  lms::Stalls stalls_;  // sums
};

// Times the nodes of the last warm-up steps, has the team replan at their end, and reports after
// the run the measured and the planned costs of steps: waits and copies from the timelines of the
// first timed step, which follows a new plan, and of the last two.
class LmsObserver final : public Observer {
 public:
  // has_plan_file: whether the first process has read its plan from a file, which it then keeps.
  // All processes get the same answer, since they must time the same steps. References must outlive
  // the object.
  LmsObserver(Team& team, Console& console, Json& result, bool has_plan_file);

  void start(const RunStart& start) override { timed_steps_ = start.timed_steps; }
  bool wants_timeline(std::int64_t number) const override;
  void step_finished(const FinishedStep& step) override;
  void timing_starts() override;
  void end(const RunEnd& end) override;

 private:
  Team& team_;
  Session& session_;  // the team's first
  Console& console_;
  Json& result_;
  bool has_plan_file_;
  std::int64_t timed_steps_ = 0;
  MeasuredCosts warm_up_, timed_;
};

}  // namespace cnn::bench
