#pragma once

#include <limits>

// The gates of ReLU gradients and dropout.
//
// A NaN stays a NaN in every kernel of every op of this project, so that a diverged network is
// visible. A closed gate therefore multiplies by zero, which turns finite numbers into 0 and all
// others into NaN; the gate of a NaN activation is open.
namespace cnn::layers {

// Returns whether the gradient of a ReLU with output y passes.
template <class Float>
bool is_open(Float y, Float limit = std::numeric_limits<Float>::infinity()) {
  const bool is_limited = limit < std::numeric_limits<Float>::infinity();
  return !(y <= 0) && !(is_limited && y >= limit);
}

// Returns the value if the gate is open, else the value times zero, but never -0.
template <class Float>
Float gated(Float value, bool open) {
  return open ? value : value * 0 + 0;
}

}  // namespace cnn::layers
