#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "lms/policy.h"
#include "runtime/tensor.h"

namespace cnn::lms {

// A tensor that a plan may take off the device between two of its uses: a candidate of the options
// once it is written, an input, or another output of the forward pass. The options keep the last
// kind, but a recomputed node writes all its outputs anew, so that their bytes are free in between.
// Steps are indices in Pressure::steps.
struct Movable {
  static constexpr double never = std::numeric_limits<double>::infinity();

  TensorId tensor{};
  double bytes = 0;                 // of the arena
  double padding = 0;               // the part of the bytes that no copy moves: alignment
  bool on_host = false;             // an input: it can be fetched again without a copy out
  bool may_copy = true;             // otherwise it is free only while its makers run again
  std::uint32_t made = 0;           // the last step that writes it; of an input its first use
  std::vector<std::uint32_t> uses;  // steps that read it or a part of it, ascending
  std::uint32_t first_backward = 0;
  // The tensor is back at the first use after the step at which it was away; if it is written in
  // parts, which may return one by one, at the last use.
  bool in_parts = false;
  // Seconds of the nodes that must run again to recompute it in the backward pass: if it was away
  // before that pass, and during it. A lower bound: the inputs of its makers may be present, and
  // their other outputs share the time. `never`: it cannot be recomputed.
  double again = never, again_late = never;

  std::uint32_t last() const { return uses.back(); }
};

// A step of the compute lane, without a plan.
struct PressureStep {
  double before = 0, seconds = 0;   // total of the compute steps before it; its own
  double live = 0;                  // bytes live while it runs, including its workspace
  std::vector<std::uint32_t> away;  // movables among the live ones that may be away while it runs
};

// The bytes that each step of a schedule holds, and by how much they can shrink. All approximations
// favour plans: bytes of other lanes do not count, and every output that may take over an input's
// bytes does.
struct Pressure {
  std::vector<PressureStep> steps;
  std::vector<Movable> movables;  // in the order of their creation, then inputs
  double seconds = 0;             // of all compute steps
};

Pressure pressure(const Request& request);

}  // namespace cnn::lms
