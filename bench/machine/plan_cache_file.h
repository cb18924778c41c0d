#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cnn::bench {

// Returns the default file for kernel choices if no flag names one, in $XDG_CACHE_HOME or ~/.cache.
// Nothing: neither can be written.
std::optional<std::string> default_plan_cache();

// Return the line for the user where there is no file, and about the one that was read. foreign:
// its lines for other owners; others: what they may differ in, "devices, drivers".
std::string no_plan_cache_note();
std::string plan_cache_note(const std::string& file, std::size_t choices, std::size_t foreign,
                            std::string_view others);

}  // namespace cnn::bench
