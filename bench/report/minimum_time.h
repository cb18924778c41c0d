#pragma once

#include "bench/report/observer.h"

namespace cnn::bench {

// Ends a run after the first timed step at which the timed steps have taken `seconds` in total. All
// ranks see the same seconds of each step, so all of them end with the same step.
class MinimumTime final : public Observer {
 public:
  explicit MinimumTime(double seconds) : wanted_(seconds) {}

  void step_finished(const FinishedStep& step) override {
    passed_ += step.timed() ? step.values.seconds : 0;
  }
  bool work_is_due(const FinishedStep& /*step*/) const override { return passed_ >= wanted_; }
  Next work(const FinishedStep& /*step*/) override { return Next::stop; }

 private:
  double wanted_, passed_ = 0;
};

}  // namespace cnn::bench
