#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/flags/config.h"

namespace cnn::bench {

// Throws Error for the first contradictory combination of flags in the configuration.
void check_rules(const Config& config);

// Throws Error unless so many ranks of --simulate_ranks are on one host, or fill hosts of `each`
// ranks.
void check_full_hosts(std::int64_t ranks, int each);

// Returns the notices for flags that differ from their default but have no effect with the others,
// as their rows say, in the order of the help.
std::vector<std::string> idle_flags(const Config& config);

// Unsets the flags of files, folders and other texts that act on steps alone if the run has no
// step, so that files of earlier runs stay as they are. idle_flags() has a notice about them.
void drop_files_of_steps(Config& config);

}  // namespace cnn::bench
