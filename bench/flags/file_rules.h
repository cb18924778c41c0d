#pragma once

#include "bench/flags/config.h"

namespace cnn::bench {

// Throws Error, which names both flags, if the run would write a file that another flag of it reads
// or writes: the later one would destroy what the earlier one wrote, or what the user has there.
// Devices, such as /dev/stdout, may be named any number of times.
void check_files(const Config& config);

}  // namespace cnn::bench
