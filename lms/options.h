#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cnn::lms {

// Whether compute waits for copies: a copy out holds up the compute step behind it, a copy back
// starts only when the step that needs it comes next.
enum class SyncMode : std::uint8_t { none, out, in, both };
constexpr bool waits_for_out(SyncMode mode) {
  return mode == SyncMode::out || mode == SyncMode::both;
}
constexpr bool waits_for_in(SyncMode mode) {
  return mode == SyncMode::in || mode == SyncMode::both;
}

// Which tensors may be computed again. cheap: only what costs no more than moving its operands.
enum class Recomputation : std::uint8_t { automatic, off, cheap, full };

enum class TriggerRule : std::uint8_t { chain_rule, direct_order };

// Options of the policies after TFLMS, versions 1 and 2; names and meanings are the originals'.
struct Tflms1Options {
  std::int64_t lb = 1, ub = 10'000;  // by how many steps a swap-in is triggered ahead: least, most
  bool fuse_swapins = false;         // one copy back for all readers
  bool swap_branches = false;        // also for far readers in the forward pass
  std::int64_t branch_threshold = 0;
  TriggerRule ctrld_strategy = TriggerRule::chain_rule;
};
struct Tflms2Options {  // -1: found by simulation
  std::int64_t swapout_threshold = -1, swapin_ahead = -1, swapin_groupby = -1;
  double simulated_share = 1;  // of the memory beside the variables, that the simulation may use
};

// The user's wishes for a plan: which tensors are candidates at all, and how they move.
struct Options {
  std::int64_t n_tensors = -1;  // at most so many leave, in the order of the policy; -1: all
  SyncMode sync_mode = SyncMode::none;
  Recomputation recompute = Recomputation::automatic;
  std::size_t size_threshold = 0;  // bytes; smaller tensors stay
  double frac = 0;                 // of the memory that must be asked for before anything leaves
  std::vector<std::string> excluded_ops, included_ops;      // regular expressions: names of tensors
  std::vector<std::string> excluded_types, included_types;  // names of ops
  Tflms1Options tflms1;
  Tflms2Options tflms2;
};

}  // namespace cnn::lms
