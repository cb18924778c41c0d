#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lms/planning_problem.h"

namespace cnn::lms {

// The decision on one root between the forward and the backward pass. keep: it stays on the device.
// swap: it is copied out and back. drop: it is recomputed once when it is needed, and kept until
// its last use. drop_often: a recomputation that only serves other recomputations is freed at once,
// and another one serves its own use. swap_often: it is copied out once, and copied back for each
// of its separate uses in the backward pass.
// drop_early: it is recomputed before the step Root::early, if not earlier. drop_always,
// swap_always: it is away between all uses that are not near each other, in both passes; also for
// roots that live in one pass only.
enum class TensorDecision : std::uint8_t {
  keep,
  swap,
  drop,
  drop_often,
  swap_often,
  drop_early,
  drop_always,
  swap_always
};
constexpr bool is_swapped(TensorDecision decision) {
  return decision == TensorDecision::swap || decision == TensorDecision::swap_often ||
         decision == TensorDecision::swap_always;
}
constexpr bool is_dropped(TensorDecision decision) {
  return decision == TensorDecision::drop || decision == TensorDecision::drop_often ||
         decision == TensorDecision::drop_early || decision == TensorDecision::drop_always;
}
constexpr bool leaves_always(TensorDecision decision) {
  return decision == TensorDecision::drop_always || decision == TensorDecision::swap_always;
}
// The decision variables of a plan, by root. Roots that may not leave are kept, and roots that
// cannot be recomputed are never dropped.
using TensorDecisions = std::vector<TensorDecision>;

// A step of an expanded schedule: one of the given schedule, or a recomputation.
struct ExpandedStep {
  StepKind kind = StepKind::compute;
  std::uint32_t id = 0;  // node, or root
  // The step of the given schedule, or the one that it precedes.
  std::uint32_t given = 0;
  bool again = false;
};

// A live interval of a root: it has bytes between two expanded steps, both included.
struct LiveInterval {
  std::uint32_t root = 0;
  std::uint32_t first = 0, last = 0;
  std::uint32_t written = 0;   // the last step that writes it: it may leave from there on
  std::uint32_t earliest = 0;  // its previous interval lives until here: it may not return earlier
  bool leaves = false;         // it is copied out after `last`
  bool returns = false;        // it is copied back before `first`
};

// An output that takes over the bytes of an input in this step: they count once.
struct InPlaceReuse {
  std::uint32_t step = 0;
  std::size_t bytes = 0;
  std::uint32_t from = 0;  // root of the input
};

// The schedule of a plan with all recomputation. Copies are not steps here: the live intervals
// imply their places.
struct ExpandedSchedule {
  std::vector<ExpandedStep> steps;
  std::vector<LiveInterval> intervals;  // by first
  std::vector<InPlaceReuse> reused_in_place;
  std::size_t backward = 0;  // first step of the backward pass
  double seconds = 0;        // of all nodes
};

// Turns decisions into an expanded schedule: recomputes a dropped root right before it is needed,
// its deepest sources first. A search expands many decisions that differ little from those of its
// current plan, the base: up to the first step that consults a differing decision the schedules are
// equal, so that the expander resumes from a state that it saved before that step.
class ScheduleExpander {
 public:
  // The base keeps all roots. The problem must outlive it.
  explicit ScheduleExpander(const PlanningProblem& problem);
  // Returns the schedule for these decisions, valid until the next call. Throws Error if a root
  // would need an impossible recomputation.
  const ExpandedSchedule& expand(const TensorDecisions& decisions);
  // Makes these decisions the base. They must have been expanded without an Error.
  void rebase(const TensorDecisions& decisions);

 private:
  struct Candidate {                           // for a take-over
    std::uint32_t step = 0, from = 0, to = 0;  // intervals
  };
  // A ProblemNode with its lists in one array, since the search spends its time there.
  struct Node {
    // Start of each list; it ends at the next node's start.
    std::uint32_t reads = 0, writes = 0, may_reuse = 0;
    bool may_repeat = false;
    double seconds = 0;
  };
  // The state before a given step of the base.
  struct State {
    std::uint32_t given = 0;
    std::size_t steps = 0, candidates = 0;  // counts
    std::size_t backward = 0;
    double seconds = 0;
    std::vector<LiveInterval> intervals;
    std::vector<std::int32_t> interval;
    std::vector<std::uint32_t> away, returned, present;
  };

  void flatten();
  void add_states();
  std::size_t resume_point(const TensorDecisions& decisions);
  void rebase(const TensorDecisions& decisions, std::size_t point);
  void restore(const State& state);
  void run_from(std::size_t state);
  void leave_forward_in_states(std::size_t end);
  void save(State& state) const;
  void touch(std::uint32_t root);
  void leave_within_pass();
  void leave(std::uint32_t root);
  bool is_read_soon(std::uint32_t root) const;
  std::span<const std::uint32_t> reads(std::uint32_t node) const;
  std::span<const std::uint32_t> writes(std::uint32_t node) const;
  std::span<const ProblemNode::InPlaceReuse> may_reuse(std::uint32_t node) const;

  void add_given();
  void recompute_early();
  void run(std::uint32_t node, bool again);
  void require(std::uint32_t root);
  void repeat_makers(std::uint32_t root);
  void leave_forward();
  void leave_forward(std::uint32_t root);
  void release();
  bool is_read_next(std::uint32_t root) const;
  void begin(std::uint32_t root, bool returns);
  void keep_outputs();
  void resolve_in_place_reuse();

  const PlanningProblem& problem_;
  std::uint32_t backward_ = 0;  // first given step of the backward pass
  std::vector<Node> nodes_;     // by NodeId, and a sentinel
  std::vector<std::uint32_t> lists_;
  std::vector<ProblemNode::InPlaceReuse> pairs_;
  std::vector<std::uint8_t> has_parts_, needed_backward_, is_input_;  // by root
  std::vector<std::uint32_t> makers_;              // nodes of all roots, one root after another
  std::vector<std::uint32_t> first_maker_;         // by root, and a sentinel: position in makers_
  std::vector<std::uint32_t> offloaded_;           // roots
  std::vector<std::vector<std::uint32_t>> early_;  // by given step: roots

  // The base.
  TensorDecisions base_;
  std::vector<State> states_;      // ascending; one is that before the backward pass
  std::size_t forward_state_ = 0;  // the index of that one
  std::vector<ExpandedStep> base_steps_;
  std::vector<Candidate> base_candidates_;
  // Indexed by root: the first given step that begins an interval of it, and the first one in the
  // backward pass that consults its state.
  std::vector<std::uint32_t> begun_, touched_;
  std::vector<std::uint32_t> differing_;  // roots whose decisions are not those of the base
  bool is_recording_ = false;

  const TensorDecisions* decisions_ = nullptr;
  ExpandedSchedule result_;
  // Indexed by root: its current interval; -1: it is not on the device.
  std::vector<std::int32_t> interval_;
  // Indexed by root: the step from which on only the host has it; 0: the device has it.
  std::vector<std::uint32_t> away_;
  std::vector<std::uint32_t> borrowed_;  // roots that are freed at the end of the given step
  std::vector<std::uint32_t> returned_;  // roots with swap_often that are on the device again
  std::vector<std::uint32_t> present_;   // roots that leave always and are on the device
  std::vector<Candidate> candidates_;
  // Indexed by interval: another interval took its bytes; it took bytes.
  std::vector<std::uint8_t> given_away_, settled_;
  std::uint32_t given_ = 0;
};

}  // namespace cnn::lms
