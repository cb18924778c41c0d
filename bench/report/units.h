#pragma once

namespace cnn::bench {

// Bytes, for what is said to people.
inline constexpr double mib = 1024.0 * 1024.0, gib = 1024.0 * mib;

}  // namespace cnn::bench
