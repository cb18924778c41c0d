#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lms/outline.h"

namespace cnn::lms {

// The decision on a root between the forward and the backward pass. drop: it is made again when it
// is needed, once, and stays till its last use. drop_often: where it is made again only to make
// others, it goes at once, and is made once more for its own use.
enum class Fate : std::uint8_t { keep, swap, drop, drop_often };
using Fates =
    std::vector<Fate>;  // by root; what may not leave is kept, what may not drop not dropped

// A step of the unrolled schedule: one of the given, or a node that runs again.
struct UnrolledStep {
  StepKind kind = StepKind::compute;
  std::uint32_t id = 0;  // node, or root
  std::uint32_t given =
      0;  // the step of the given schedule, or the one in front of which it stands
  bool again = false;
};

// Bytes of a root from one unrolled step to another, both included.
struct Stay {
  std::uint32_t root = 0;
  std::uint32_t first = 0, last = 0;
  std::uint32_t written = 0;  // the last step that wrote it: it may leave from there on
  bool leaves = false;        // it is copied out behind `last`
  bool returns = false;       // it is copied back in front of `first`
};

// An output that takes over the bytes of an input in this step: they count once there.
struct TakeOver {
  std::uint32_t step = 0;
  std::size_t bytes = 0;
};

// Copies are no steps here: stays say where they stand.
struct Unrolled {
  std::vector<UnrolledStep> steps;
  std::vector<Stay> stays;  // by first
  std::vector<TakeOver> taken_over;
  std::size_t backward = 0;  // first step of the backward pass
  double seconds = 0;        // of all nodes
};

// Repeats only what is needed, right before it is needed, deepest sources first. The forward pass
// is the same for all fates: it is unrolled once.
class Unroller {
 public:
  explicit Unroller(const Outline& outline);
  // Valid until the next call. Throws Error if something would have to be made again that cannot
  // be.
  const Unrolled& unroll(const Fates& fates);

 private:
  struct Candidate {                           // for a take-over
    std::uint32_t step = 0, from = 0, to = 0;  // stays
  };
  // An OutlineNode with its lists in one array, which is what the time goes into.
  struct Node {
    std::uint32_t reads = 0, writes = 0, may_take = 0;  // where each begins; it ends with the next
    double seconds = 0;
  };

  void flatten();
  void run_forward();
  std::span<const std::uint32_t> reads(std::uint32_t node) const;
  std::span<const std::uint32_t> writes(std::uint32_t node) const;
  std::span<const OutlineNode::TakeOver> may_take(std::uint32_t node) const;

  void add_given();
  void run(std::uint32_t node, bool again);
  void require(std::uint32_t root);
  void repeat_makers(std::uint32_t root);
  void leave_forward();
  void release();
  void begin(std::uint32_t root, bool returns);
  void settle_take_overs();

  const Outline& outline_;
  std::vector<Node> nodes_;  // by NodeId, and one behind
  std::vector<std::uint32_t> lists_;
  std::vector<OutlineNode::TakeOver> pairs_;
  std::vector<bool> has_parts_;  // by root

  // The state that the forward pass leaves behind.
  Unrolled forward_;
  std::vector<std::int32_t> forward_stay_;
  std::size_t forward_candidates_ = 0;

  const Fates* fates_ = nullptr;
  Unrolled result_;
  std::vector<std::int32_t> stay_;       // by root: its present stay, -1: it is not on the device
  std::vector<std::uint8_t> away_;       // by root: on the host
  std::vector<std::uint32_t> borrowed_;  // roots that go at the end of the given step
  std::vector<Candidate> candidates_;
  std::vector<std::uint8_t> given_away_, settled_;  // by stay: another took its bytes; it took some
  std::uint32_t given_ = 0;
};

}  // namespace cnn::lms
