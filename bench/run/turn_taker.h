#pragma once

#include "bench/flags/json.h"
#include "bench/report/observer.h"
#include "bench/run/turns.h"

namespace cnn::bench {

// Passes the turn on when the warm-up is over, and between steps whenever it has lasted long
// enough; no step's time has a wait in it. List it first: others start their clocks when it is
// this program's turn. Adds the section "turns" to the result.
class TurnTaker final : public Observer {
 public:
  // References must outlive it.
  TurnTaker(Turns& turns, Json& result) : turns_(turns), result_(result) {}

  void timing_starts() override { turns_.pass(); }
  bool work_is_due(const FinishedStep&) const override { return turns_.is_over(); }
  Next work(const FinishedStep& step) override;
  void end(const RunEnd& end) override;
  void failed(const RunEnd& end, std::string_view /*what*/) override { this->end(end); }

 private:
  Turns& turns_;
  Json& result_;
};

}  // namespace cnn::bench
