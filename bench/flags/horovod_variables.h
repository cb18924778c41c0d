#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/flags/config.h"
#include "bench/flags/settings.h"

namespace cnn::bench {

// Sets the flags that correspond to Horovod's environment variables; flags given on the command
// line, according to `settings`, keep their values. Returns a line for each known variable of
// Horovod: the flags that it sets, or why it has no effect. Throws Error with a variable whose
// value is not a number or a path as required.
std::vector<std::string> apply_horovod_variables(const EnvironmentVariables& variables,
                                                 std::span<const Setting> settings, Config& config);

}  // namespace cnn::bench
