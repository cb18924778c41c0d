#pragma once

#include <string>

#include "bench/compare/run.h"

namespace cnn::page {

// "64 B", "1.5 KiB", "24.0 GiB": in the largest binary unit of which there is at least one, as
// rounded.
std::string bytes_text(double bytes);

// "15.6 GB/s", "102.0 GFLOP/s": a rate in the largest decimal unit of which there is at least one,
// as rounded; `unit` is "B" or "FLOP".
std::string rate_text(double per_second, const std::string& unit);

// A value of the result file as people read it; its key says what it is: sizes of "..._bytes" in
// binary units, rates of "..._bytes_per_second" and "..._flops_per_second" in decimal ones.
std::string readable(const std::string& key, const compare::Json& value);

}  // namespace cnn::page
