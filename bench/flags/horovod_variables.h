#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/flags/config.h"
#include "bench/flags/settings.h"

namespace cnn::bench {

// Flags take what Horovod's variables say, unless they are given themselves. Returns a line for
// each variable: what it has set, or why it has no effect. Throws Error that names a variable whose
// value is no number where it must be one.
std::vector<std::string> apply_horovod_variables(const EnvironmentVariables& variables,
                                                 std::span<const Setting> settings, Config& config);

}  // namespace cnn::bench
