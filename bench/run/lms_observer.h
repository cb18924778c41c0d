#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/flags/json.h"
#include "bench/report/console.h"
#include "bench/report/observer.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::bench {

class Session;

// What nodes and copies took in some steps.
class MeasuredCosts {
 public:
  void add(const StepPlan& plan, const Timeline& timeline);
  bool is_empty() const { return seconds_.empty(); }
  // Of each node the median; where nothing was copied, the link as `expected` has it.
  Costs costs(const Costs& expected) const;

 private:
  std::vector<std::vector<double>> seconds_;  // by NodeId
  double out_bytes_ = 0, out_seconds_ = 0, in_bytes_ = 0, in_seconds_ = 0;
};

// Times the nodes of the last warm-up steps, has the plan made anew at their end, and says after
// the run what the steps took beside what was planned.
class LmsObserver final : public Observer {
 public:
  // References must outlive it.
  LmsObserver(Session& session, Console& console, Json& result);

  bool wants_timeline(std::int64_t number) const override;
  void step_finished(const FinishedStep& step) override;
  void timing_starts() override;
  void end(const RunEnd& end) override;

 private:
  Session& session_;
  Console& console_;
  Json& result_;
  MeasuredCosts measured_;
};

}  // namespace cnn::bench
