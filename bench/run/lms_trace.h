#pragma once

#include <string>

#include "bench/report/observer.h"
#include "bench/report/output_file.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::bench {

class Session;

// Returns one Chrome trace of a step as planned and as measured, each with its lanes.
std::string planned_and_measured(const StepPlan& plan, const Timeline& planned,
                                 const Timeline& measured);

// Writes the step as planned to the target of --lms_trace. Throws Error if it cannot.
void write_planned(const std::string& path, const Session& session);

// The target of --lms_trace: the first timed step, after which the plan no longer changes.
class LmsTrace final : public Observer {
 public:
  // References must outlive the object. Throws Error if the path is not writable.
  LmsTrace(const std::string& path, const Session& session);

  bool wants_timeline(std::int64_t step) const override { return step == 1; }
  void step_finished(const FinishedStep& step) override;

 private:
  OutputFile file_;
  const Session& session_;
};

}  // namespace cnn::bench
