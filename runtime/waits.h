#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn {

// A vector clock over lanes: for each lane its last finished step, -1 for none. A lane runs in
// order, so its component stands for all earlier steps of the lane too.
using VectorClock = std::array<std::int64_t, lane_count>;
inline constexpr VectorClock no_steps{-1, -1, -1, -1, -1, -1};

constexpr std::size_t index_of_lane(Lane lane) { return static_cast<std::size_t>(lane); }

// The happens-before relation of a schedule: lanes run their steps in order, and waits order steps
// of different lanes. Steps are added in the order of the schedule.
class HappensBefore {
 public:
  // Returns the clock of the next step of this lane before any wait of its own.
  const VectorClock& before(Lane lane) const { return lanes_[index_of_lane(lane)]; }
  // Returns the clock at the end of `step`, which it includes.
  const VectorClock& after(StepId step) const { return after_[index_of(step)]; }
  // Adds the next step, which waits for these earlier steps, and returns its clock at its start.
  VectorClock add(Lane lane, const VectorClock& waits);
  // Adds the next step with its own waits.
  VectorClock add(const Step& step);

 private:
  VectorClock finish(Lane lane, const VectorClock& known);

  std::vector<VectorClock> after_;
  std::array<VectorClock, lane_count> lanes_{no_steps, no_steps, no_steps,
                                             no_steps, no_steps, no_steps};
};

// Makes `into` the component-wise maximum of both clocks.
void merge(VectorClock& into, const VectorClock& other);
// Returns whether all steps of `earlier` have finished at clock `later`: `earlier` is
// component-wise at most `later`.
bool happened_before(const VectorClock& earlier, const VectorClock& later);

// Returns the waits that a step of a schedule already has. Throws Error if one is not for an
// earlier step.
VectorClock given_waits(const Schedule& schedule, std::size_t step);

// The waits that follow from the data that steps touch on device or host: a read waits for the last
// write, a write for all earlier accesses. Steps are added in their order.
class DataOrder {
 public:
  explicit DataOrder(const Graph& graph);
  // Returns the waits of the next step, whose number is `index`. They may name the step itself, in
  // its own lane.
  VectorClock needs(std::size_t index, const Step& step);

 private:
  struct History {
    VectorClock written = no_steps;  // the latest write, which waited for earlier ones
    VectorClock touched = no_steps;
  };
  void use(History& history, bool writes, VectorClock& need);

  const Graph& graph_;
  std::vector<History> device_;  // by TensorId of roots: the latest interval, or the variable
  std::vector<History> host_;    // by TensorId: the copy on the host
  std::vector<History> disk_;    // by TensorId: the copy on the disk
  std::int64_t step_ = 0;
  std::size_t lane_ = 0;
};

}  // namespace cnn
