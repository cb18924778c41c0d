#include "runtime/waits.h"

#include <algorithm>

namespace cnn {

void merge(LaneSteps& into, const LaneSteps& other) {
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    into[lane] = std::max(into[lane], other[lane]);
  }
}

LaneSteps Knowledge::add(const Step& step) {
  const std::size_t lane = index_of_lane(step.lane);
  LaneSteps known = lanes_[lane];
  for (const StepId wait : step.after) {
    merge(known, after_.at(index_of(wait)));
  }
  LaneSteps finished = known;
  finished[lane] = static_cast<std::int64_t>(after_.size());
  lanes_[lane] = finished;
  after_.push_back(finished);
  return known;
}

}  // namespace cnn
