#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "lms/planning_problem.h"

namespace cnn::lms {

// Models the times of host memory that is too small for all swap-outs, with a disk behind it, for
// the evaluation of thousands of plans: the earliest swap-outs, which return last, go on to the
// disk. with_disk_tier() makes the schedule of the best plan exactly. Swap-outs are known by their
// number, in the order of their copies.
class DiskLane {
 public:
  explicit DiskLane(const PlanningProblem& problem) : problem_(problem) {}

  // Starts a step whose swap-outs have these bytes.
  void start(std::span<const std::size_t> bytes);
  // Returns the time from `time` on at which the host has room for the swap-out.
  double admit(std::size_t swap_out, double time);
  // The copy of the swap-out to the host ends at this time.
  void arrived(std::size_t swap_out, double time);
  // Returns the time at which the swapped-out tensor is on the host again; 0 if it never left it.
  double back(std::size_t swap_out);
  // The copy of the tensor to the device ends at this time.
  void returned(std::size_t swap_out, double time);
  double end() const { return end_; }  // of the last transfer

 private:
  double make_room(std::size_t bytes, double time);
  bool is_stored(std::size_t swap_out) const { return swap_out < stored_; }

  const PlanningProblem& problem_;
  std::vector<std::size_t> bytes_;  // by swap-out
  std::size_t stored_ = 0;          // the number of swap-outs that go to the disk
  std::vector<double> store_ends_;  // of those whose Store has begun
  std::vector<double> loaded_;      // by swap-out that is stored: 0, not yet
  std::vector<bool> has_returned_;  // by swap-out
  std::vector<std::pair<double, std::size_t>> returns_;  // time and bytes that are free then
  std::size_t freed_stores_ = 0, freed_returns_ = 0;
  std::size_t held_ = 0;  // bytes on the host
  double end_ = 0;
};

}  // namespace cnn::lms
