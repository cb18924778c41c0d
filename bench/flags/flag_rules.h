#pragma once

#include <string>
#include <vector>

#include "bench/flags/config.h"

namespace cnn::bench {

// Combinations of flags that make no sense: throws Error for the first one that the configuration
// is.
void check_rules(const Config& config);

// The lines of flags that differ from their default but cannot matter beside the others: what their
// rows say is idle, in the order of the help.
std::vector<std::string> idle_flags(const Config& config);

}  // namespace cnn::bench
