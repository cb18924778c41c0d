#pragma once

#include "bench/flags/json.h"
#include "bench/report/observer.h"
#include "bench/run/slice_lock.h"

namespace cnn::bench {

// Runs this program in time slices that alternate with those of other programs (--take_turns):
// passes the turn after the warm-up, and between steps when the slice is over, so that no step's
// time contains a wait. It must be the first observer: the others start their clocks when this
// program has its turn. Adds the section "turns" to the result.
class TimeSlicer final : public Observer {
 public:
  // References must outlive the object.
  TimeSlicer(SliceLock& turns, Json& result) : slices_(turns), result_(result) {}

  void timing_starts() override { slices_.pass(); }
  bool work_is_due(const FinishedStep&) const override { return slices_.is_over(); }
  Next work(const FinishedStep& step) override;
  void end(const RunEnd& end) override;
  void failed(const RunEnd& end, std::string_view /*what*/) override { this->end(end); }

 private:
  SliceLock& slices_;
  Json& result_;
};

}  // namespace cnn::bench
