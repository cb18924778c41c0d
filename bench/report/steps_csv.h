#pragma once

#include <string>

#include "bench/flags/json.h"

namespace cnn::bench {

// The section "steps" of a result as comma-separated values: a line of titles, then one line for
// each timed step. A value that a step lacks, and a loss that is no number, is an empty cell.
std::string steps_csv(const Json& result);

}  // namespace cnn::bench
