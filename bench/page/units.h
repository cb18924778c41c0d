#pragma once

#include <string>

#include "bench/compare/run.h"

namespace cnn::page {

// Returns "64 B", "1.5 KiB", "24.0 GiB": the largest binary unit in which the rounded value is at
// least one.
std::string bytes_text(double bytes);
inline constexpr double one_mib = 1024.0 * 1024.0;  // bytes

// Returns "15.6 GB/s", "102.0 GFLOP/s": a rate in the largest decimal unit in which the rounded
// value is at least one; `unit` is "B" or "FLOP".
std::string rate_text(double per_second, const std::string& unit);

// Returns a value of the result file with a unit that its key implies: sizes of "..._bytes" in
// binary units, rates of "..._bytes_per_second" and "..._flops_per_second" in decimal units.
std::string readable(const std::string& key, const compare::Json& value);

}  // namespace cnn::page
