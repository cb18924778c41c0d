#pragma once

namespace cnn::bench {

// Units of bytes for messages.
inline constexpr double mib = 1024.0 * 1024.0, gib = 1024.0 * mib;

}  // namespace cnn::bench
