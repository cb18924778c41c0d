#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn {

// A vector clock over lanes: for each lane the last of its steps that has finished, -1 for none. As
// a lane runs in order, its component stands for all earlier steps of the lane too.
using VectorClock = std::array<std::int64_t, lane_count>;
inline constexpr VectorClock no_steps{-1, -1, -1, -1, -1};

constexpr std::size_t index_of_lane(Lane lane) { return static_cast<std::size_t>(lane); }

// The happens-before relation of a schedule: lanes run their steps in order, and waits order steps
// of different lanes. Steps are added in the order of the schedule.
class HappensBefore {
 public:
  // Returns the clock of the next step of this lane before any wait of its own.
  const VectorClock& before(Lane lane) const { return lanes_[index_of_lane(lane)]; }
  // Returns the clock at the end of `step`, which it includes.
  const VectorClock& after(StepId step) const { return after_[index_of(step)]; }
  // Adds the next step, which waits for these earlier ones, and returns its clock at its start.
  VectorClock add(Lane lane, const VectorClock& waits);
  // The same with the step's own waits.
  VectorClock add(const Step& step);

 private:
  VectorClock finish(Lane lane, const VectorClock& known);

  std::vector<VectorClock> after_;
  std::array<VectorClock, lane_count> lanes_{no_steps, no_steps, no_steps, no_steps, no_steps};
};

// Makes `into` the component-wise maximum of both clocks.
void merge(VectorClock& into, const VectorClock& other);
// Returns whether all steps of `earlier` have finished when `later` is the clock: it is
// component-wise at most that.
bool happened_before(const VectorClock& earlier, const VectorClock& later);

// The waits that a step of a schedule has already. Throws Error if one is not for an earlier step.
VectorClock given_waits(const Schedule& schedule, std::size_t step);

// The waits that follow from the data that steps touch, wherever it lies: a read for the write
// that it needs, a write for all before it. Steps are added in their order.
class DataOrder {
 public:
  explicit DataOrder(const Graph& graph);
  // Returns the waits of the next step, whose number is `index`. They may name the step itself, in
  // its own lane.
  VectorClock needs(std::size_t index, const Step& step);

 private:
  struct History {
    VectorClock written = no_steps;  // only the latest write counts: it waited for those before
    VectorClock touched = no_steps;
  };
  void use(History& history, bool writes, VectorClock& need);

  const Graph& graph_;
  std::vector<History> device_;  // by TensorId of roots: of the latest interval, or of the variable
  std::vector<History> host_;    // by TensorId: of the copy there
  std::int64_t step_ = 0;
  std::size_t lane_ = 0;
};

}  // namespace cnn
