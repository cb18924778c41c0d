#include "bench/run/rank_trace.h"

#include "bench/ranks/rank_lanes.h"
#include "bench/report/reporter.h"
#include "bench/session/team.h"

namespace cnn::bench {

RankTrace::RankTrace(Console& console, const std::string& path, Team& team)
    : console_(console), path_(path), team_(team) {
  if (!path.empty()) {
    file_.emplace(path);
  }
}

void RankTrace::step_finished(const FinishedStep& step) {
  if (step.number != traced_step || step.timeline == nullptr) {
    return;
  }
  const Json ranks = team_.lanes_of_ranks();
  if (file_) {
    console_.print(trace_line(path_));
    file_->write(chrome_trace_of_ranks(ranks));
  }
}

}  // namespace cnn::bench
