#pragma once

#include <string_view>

namespace cnn::bench {

// Returns what to use today in place of a flag that releases of the original before its last one
// had and that no row of the flag table stands for; empty for any other name. Flags whose values
// still mean the same are rows with Flag::renamed_to.
std::string_view successor_of(std::string_view older_flag);

}  // namespace cnn::bench
