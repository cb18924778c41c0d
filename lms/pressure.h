#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "lms/policy.h"
#include "runtime/tensor.h"

namespace cnn::lms {

// A tensor that a plan may take off the device between two of its uses: a candidate of the options
// once it is made, an input, or another output of the forward pass. The options do not let the
// latter leave, but where the node that makes it runs again, all its outputs are made anew, so that
// their bytes are free in between. Steps are places in Pressure::steps.
struct Movable {
  static constexpr double never = std::numeric_limits<double>::infinity();

  TensorId tensor{};
  double bytes = 0;                 // of the arena
  double padding = 0;               // of these, what no copy moves: alignment
  bool on_host = false;             // an input: it can come again and need not leave
  bool may_copy = true;             // else it is free only while its makers run again
  std::uint32_t made = 0;           // the last step that writes it; of an input its first use
  std::vector<std::uint32_t> uses;  // steps that read it or a part of it, ascending
  std::uint32_t first_backward = 0;
  // At this use, what was away is there again: the first behind the step at which it was away; but
  // of what is written in parts, which may come back one by one, the last.
  bool in_parts = false;
  // Seconds of nodes that must run again for what was made again in the backward pass: if it was
  // away before that pass, and during it. Never more than it takes: what the makers read may be
  // there, and what else they write shares their time. `never`: it cannot be made again.
  double again = never, again_late = never;

  std::uint32_t last() const { return uses.back(); }
};

// A step of the compute lane, without a plan.
struct PressureStep {
  double before = 0, seconds = 0;   // of the compute steps in front of it; its own
  double live = 0;                  // bytes: alive while it runs, and its workspace
  std::vector<std::uint32_t> away;  // of the live: movables that need not be there while it runs
};

// The bytes that each step of a schedule holds, and how many less it could hold. All in the
// direction that makes plans look better than they are: bytes that other lanes touch are not
// counted, and every output that may take over the bytes of an input does.
struct Pressure {
  std::vector<PressureStep> steps;
  std::vector<Movable> movables;  // in the order in which they are made, then inputs
  double seconds = 0;             // of all compute steps
};

Pressure pressure(const Request& request);

}  // namespace cnn::lms
