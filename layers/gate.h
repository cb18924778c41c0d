#pragma once

#include <limits>

// How a gradient passes a ReLU, and a value a dropout.
//
// A NaN stays a NaN in every kernel of every op of this project, so that a network which has gone
// wrong says so. A value that a gate cuts off is therefore multiplied by zero, which leaves 0 of a
// finite number and NaN of every other; and the gate of an activation that is NaN is open.
namespace cnn::layers {

// Whether the gradient of a ReLU with the output y passes.
template <class Float>
bool is_open(Float y, Float limit = std::numeric_limits<Float>::infinity()) {
  const bool is_limited = limit < std::numeric_limits<Float>::infinity();
  return !(y <= 0) && !(is_limited && y >= limit);
}

// value where the gate is open, else value times zero, but never -0.
template <class Float>
Float gated(Float value, bool open) {
  return open ? value : value * 0 + 0;
}

}  // namespace cnn::layers
