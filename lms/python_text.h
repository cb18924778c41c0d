#pragma once

#include <cstdint>
#include <string>

namespace cnn::lms {

// Formats numbers like the logs of the original policies, which are written in Python.
std::string python_text(double value);      // 64.0, 799.3814945220947
std::string rounded_text(double value);     // to two decimals, zeros dropped: 20.33, 0.9, 64.0
std::string gib_text(std::uint64_t bytes);  // in GiB
std::string mib_text(std::uint64_t bytes);  // in MiB

}  // namespace cnn::lms
