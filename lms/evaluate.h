#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lms/disk_lane.h"
#include "lms/expanded_schedule.h"
#include "lms/options.h"
#include "lms/planning_problem.h"

namespace cnn::lms {

// The place of a copy in an expanded schedule. A swap-in reserves its bytes from `position` on; the
// bytes of a swap-out are free once a step, or the swap-in before it, waits for the copy.
struct PlacedSwapOut {
  std::uint32_t interval = 0;
  std::optional<std::uint32_t> freed_for_step, freed_for_swap_in;  // at most one of these
};
struct PlacedSwapIn {
  std::uint32_t interval = 0;
  std::uint32_t position = 0;
};

struct Evaluation {
  std::size_t peak = 0;  // bytes, maximum over the steps
  double excess = 0;     // bytes above the budget, summed over the steps
  double seconds = 0;    // of the step, including waits
  bool fits = false;
};

// Computes memory over the expanded steps, and time. Swap-outs and swap-ins are one queue each: a
// swap-out frees its bytes only when a step or a swap-in needs them, which then waits for it; a
// swap-in begins as early as the memory between its start and its use permits. This order of copies
// is optimal for tensors of one size. A tensor that returned before needs no copy where its bytes
// may stay from use to use.
class Evaluator {
 public:
  Evaluator(const PlanningProblem& problem, std::size_t device_bytes,
            SyncMode sync = SyncMode::none);

  const Evaluation& evaluate(const ExpandedSchedule& expanded);

  // Like evaluate() if the plan fits and its nodes take at most `seconds`; otherwise `seconds`
  // counts only the nodes, and only the returned evaluation is valid.
  const Evaluation& estimate(const ExpandedSchedule& expanded, double seconds);

  // Leaves these bytes of the device free of early swap-ins and of swap-outs that have ended, where
  // placement needs room. by_step: by expanded step. Empty: all may be used.
  void reserve(std::vector<std::size_t> by_step) { reserved_ = std::move(by_step); }

  // Shortens live intervals without lengthening the step, so that placement finds room: with the
  // times of the latest evaluation, it frees the bytes of swap-outs as soon as the copies end, and
  // starts swap-ins so late that each ends `slack` seconds before its use.
  void tighten(const ExpandedSchedule& expanded, double slack);

  // Return the copies of the latest evaluation.
  const std::vector<PlacedSwapOut>& swap_outs() const { return swap_outs_; }
  const std::vector<PlacedSwapIn>& swap_ins() const { return swap_ins_; }
  const std::vector<std::size_t>& bytes() const { return bytes_; }  // by expanded step

 private:
  void weigh(const ExpandedSchedule& expanded);
  void run(const ExpandedSchedule& expanded);
  void add_intervals(const ExpandedSchedule& expanded);
  void find_copies(const ExpandedSchedule& expanded);
  void merge_returns(const ExpandedSchedule& expanded);
  void bring_forward(const ExpandedSchedule& expanded);
  void measure();
  void start_lanes(const ExpandedSchedule& expanded);
  void run_lanes(const ExpandedSchedule& expanded);
  void free_for(std::uint32_t step, std::size_t room, std::optional<std::uint32_t> for_swap_in);
  void begin_swap_in(const ExpandedSchedule& expanded, std::uint32_t r, std::size_t room);
  void free_next();
  double free_until(std::size_t room) const;
  double leftovers_until(const ExpandedSchedule& expanded, std::size_t room, std::uint32_t swap_in,
                         double now);
  // Returns the bytes that copies may fill at a step.
  std::size_t limit(std::size_t step) const {
    return reserved_.empty() ? device_bytes_
                             : device_bytes_ - std::min(device_bytes_, reserved_[step]);
  }
  void free_early(const ExpandedSchedule& expanded);
  void await_swap_outs(const ExpandedSchedule& expanded);
  std::size_t bytes_of(const LiveInterval& interval) const { return root_bytes_[interval.root]; }

  // Members of roots and nodes in arrays of their own, which the caches hold.
  std::vector<std::size_t> root_bytes_, workspace_;                        // by root, by node
  std::vector<double> node_seconds_, swap_out_seconds_, swap_in_seconds_;  // by node, by root
  std::size_t device_bytes_;
  SyncMode sync_;
  Evaluation result_;
  std::vector<std::size_t> reserved_;  // by expanded step
  std::vector<std::size_t> bytes_;
  std::vector<PlacedSwapOut> swap_outs_;
  std::vector<PlacedSwapIn> swap_ins_;
  // Scratch memory of run_lanes.
  std::vector<double> ends_, starts_;       // by expanded step
  std::vector<double> departed_;            // by swap-out: end of its copy
  std::vector<double> begun_;               // by swap-in: start of its copy
  std::vector<double> ready_;               // by expanded step: end of its swap-ins
  std::vector<std::size_t> pending_bytes_;  // by swap-out
  std::vector<std::int32_t> swap_out_of_;   // by root
  std::size_t freed_ = 0;                   // swap-outs whose bytes are free
  std::size_t started_ = 0;                 // swap-outs after a step that has run
  std::size_t pending_ = 0;                 // bytes of started swap-outs that are not freed
  std::size_t swap_outs_ended_ = 0;         // before a step that has run
  std::size_t promised_ = 0;                // bytes of freed swap-outs that have not ended then
  std::uint32_t swap_ins_begun_ = 0;        // before such a step
  std::size_t awaiting_ = 0;                // bytes of placed swap-ins that have not begun then
  double waits_until_ = 0;
  double in_ = 0;  // time at which the swap-in lane is free
  DiskLane disk_;
};

}  // namespace cnn::lms
