#pragma once

#include <string_view>

namespace cnn::bench {

// Returns what to use today in place of a flag that releases of the original before its last one
// had and that no row of the flag table stands for; empty for any other name. Flags whose values
// still mean the same are rows with Flag::renamed_to.
std::string_view successor_of(std::string_view older_flag);

// Returns what to write in place of a value that older releases or variants of the original take,
// such as --variable_update=kungfu. Empty: it is no such value.
std::string_view successor_of_value(std::string_view flag, std::string_view value);

}  // namespace cnn::bench
