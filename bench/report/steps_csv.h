#pragma once

#include <string>

#include "bench/flags/json.h"

namespace cnn::bench {

// Returns the section "steps" of a result as comma-separated values: a header line, then one line
// for each timed step. Missing values and NaN losses are empty cells.
std::string steps_csv(const Json& result);

}  // namespace cnn::bench
