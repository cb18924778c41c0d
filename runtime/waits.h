#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/schedule.h"

namespace cnn {

// A step of each lane, -1 for none: as lanes run in order, it stands for all earlier ones too.
using LaneSteps = std::array<std::int64_t, lane_count>;
inline constexpr LaneSteps no_steps{-1, -1, -1, -1, -1};

constexpr std::size_t index_of_lane(Lane lane) { return static_cast<std::size_t>(lane); }

// What is known to have finished before a step starts, from the order of its lane and from waits.
// Steps are added in their order.
class Knowledge {
 public:
  // Of what the next step of this lane knows before any wait of its own.
  const LaneSteps& before(Lane lane) const { return lanes_[index_of_lane(lane)]; }
  // Of what is known once `step` has finished.
  const LaneSteps& after(StepId step) const { return after_[index_of(step)]; }
  // Adds the next step with its waits (all on earlier steps) and returns what it knows at its
  // start.
  LaneSteps add(const Step& step);

 private:
  std::vector<LaneSteps> after_;
  std::array<LaneSteps, lane_count> lanes_{no_steps, no_steps, no_steps, no_steps, no_steps};
};

void merge(LaneSteps& into, const LaneSteps& other);

}  // namespace cnn
