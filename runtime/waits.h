#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn {

// A step of each lane, -1 for none: as lanes run in order, it stands for all earlier ones too.
using LaneSteps = std::array<std::int64_t, lane_count>;
inline constexpr LaneSteps no_steps{-1, -1, -1, -1, -1};

constexpr std::size_t index_of_lane(Lane lane) { return static_cast<std::size_t>(lane); }

// The steps that are known to have finished before a step starts, from the order of its lane and
// from waits. Steps are added in their order.
class Knowledge {
 public:
  // Returns what the next step of this lane knows before any wait of its own.
  const LaneSteps& before(Lane lane) const { return lanes_[index_of_lane(lane)]; }
  // Returns what is known once `step` has finished.
  const LaneSteps& after(StepId step) const { return after_[index_of(step)]; }
  // Adds the next step, which waits for these earlier ones, and returns what it knows at its start.
  LaneSteps add(Lane lane, const LaneSteps& waits);
  // The same with the step's own waits.
  LaneSteps add(const Step& step);

 private:
  LaneSteps finish(Lane lane, const LaneSteps& known);

  std::vector<LaneSteps> after_;
  std::array<LaneSteps, lane_count> lanes_{no_steps, no_steps, no_steps, no_steps, no_steps};
};

void merge(LaneSteps& into, const LaneSteps& other);
bool is_known(const LaneSteps& known, const LaneSteps& steps);

// The waits that a step of a schedule has already. Throws Error if one is not for an earlier step.
LaneSteps given_waits(const Schedule& schedule, std::size_t step);

// The waits that follow from the data that steps touch, wherever it lies: a read for the write
// that it needs, a write for all before it. Steps are added in their order.
class DataOrder {
 public:
  explicit DataOrder(const Graph& graph);
  // For the next step, whose number is `index`. It may name the step itself, in its own lane.
  LaneSteps needs(std::size_t index, const Step& step);

 private:
  struct History {
    LaneSteps written = no_steps;  // only the latest write counts: it waited for those before
    LaneSteps touched = no_steps;
  };
  void use(History& history, bool writes, LaneSteps& need);

  const Graph& graph_;
  std::vector<History> device_;  // by TensorId of roots: of the latest stay, or of the variable
  std::vector<History> host_;    // by TensorId: of the copy there
  std::int64_t step_ = 0;
  std::size_t lane_ = 0;
};

}  // namespace cnn
