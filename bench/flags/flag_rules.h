#pragma once

#include <string>
#include <vector>

#include "bench/flags/config.h"

namespace cnn::bench {

// Combinations of flags that make no sense: throws Error for the first one that the configuration
// is.
void check_rules(const Config& config);

// One line for each flag that was set but cannot matter beside the others.
std::vector<std::string> idle_flags(const Config& config);

}  // namespace cnn::bench
