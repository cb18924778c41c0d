#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cnn::lms {

// Whether compute waits for copies. out: the next compute step waits for each copy out. in: a copy
// back starts only just before the step that needs it.
enum class SyncMode : std::uint8_t { none, out, in, both };
constexpr bool waits_for_out(SyncMode mode) {
  return mode == SyncMode::out || mode == SyncMode::both;
}
constexpr bool waits_for_in(SyncMode mode) {
  return mode == SyncMode::in || mode == SyncMode::both;
}

// The tensors that may be recomputed. cheap: only if this costs at most as much as moving the
// operands.
enum class Recomputation : std::uint8_t { automatic, off, cheap, full };

enum class TriggerRule : std::uint8_t { chain_rule, direct_order };

// Options of the TFLMS policies, versions 1 and 2; names and meanings are those of the originals.
struct Tflms1Options {
  // Steps by which a swap-in is triggered ahead: minimum, maximum.
  std::int64_t lb = 1, ub = 10'000;
  bool fuse_swapins = false;   // one copy back for all readers
  bool swap_branches = false;  // also for distant readers in the forward pass
  std::int64_t branch_threshold = 0;
  TriggerRule ctrld_strategy = TriggerRule::chain_rule;
};
struct Tflms2Options {  // -1: found by simulation
  std::int64_t swapout_threshold = -1, swapin_ahead = -1, swapin_groupby = -1;
  // Fraction of the memory beside the variables that the simulation may use.
  double simulated_share = 1;
};

// The user's options for a plan: the candidate tensors, and how they move.
struct Options {
  // Maximum number of tensors that leave, in the policy's order; -1: all.
  std::int64_t n_tensors = -1;
  SyncMode sync_mode = SyncMode::none;
  Recomputation recompute = Recomputation::automatic;
  std::size_t size_threshold = 0;  // bytes; smaller tensors stay
  // Also moves tensors, and recomputes them, between two uses in the same pass. For steps in
  // slices, where a tensor of one slice waits for all others.
  bool within_pass = false;
  double frac = 0;  // fraction of the memory that a step must need before tensors leave
  std::vector<std::string> excluded_ops, included_ops;      // regular expressions: names of tensors
  std::vector<std::string> excluded_types, included_types;  // names of ops
  Tflms1Options tflms1;
  Tflms2Options tflms2;
};

}  // namespace cnn::lms
