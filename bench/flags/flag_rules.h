#pragma once

#include <string>
#include <vector>

#include "bench/flags/config.h"

namespace cnn::bench {

// Throws Error for the first contradictory combination of flags in the configuration.
void check_rules(const Config& config);

// Returns the notices for flags that differ from their default but have no effect with the others,
// as their rows say, in the order of the help.
std::vector<std::string> idle_flags(const Config& config);

}  // namespace cnn::bench
