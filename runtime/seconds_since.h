#pragma once

#include <chrono>

namespace cnn {

template <class Rep, class Period>
constexpr double in_seconds(std::chrono::duration<Rep, Period> time) {
  return std::chrono::duration<double>(time).count();
}

// Returns the wall time that has passed since then, in seconds.
inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return in_seconds(std::chrono::steady_clock::now() - start);
}

}  // namespace cnn
