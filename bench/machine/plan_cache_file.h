#pragma once

#include <optional>
#include <string>

namespace cnn::bench {

// Returns the default file for kernel choices if no flag names one, in $XDG_CACHE_HOME or ~/.cache.
// Nothing: neither can be written.
std::optional<std::string> usual_plan_cache();

}  // namespace cnn::bench
