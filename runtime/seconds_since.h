#pragma once

#include <chrono>

namespace cnn {

// Returns the wall time that has passed since then, in seconds.
inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace cnn
