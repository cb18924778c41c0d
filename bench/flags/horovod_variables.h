#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/flags/config.h"
#include "bench/flags/settings.h"

namespace cnn::bench {

// Sets the flags that mean the same as Horovod's variables; `settings` says which flags the command
// line gives, and those keep their values. Returns a line for each variable that Horovod knows and
// whose counterpart is known here: the flags that it sets, or the reason why it has no effect.
// Throws Error that names the variable whose value is not what it must be, a number or a path.
std::vector<std::string> apply_horovod_variables(const EnvironmentVariables& variables,
                                                 std::span<const Setting> settings, Config& config);

}  // namespace cnn::bench
