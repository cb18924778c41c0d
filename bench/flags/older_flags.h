#pragma once

#include <string_view>

namespace cnn::bench {

// Returns the replacement of a flag that earlier releases of upstream had and the flag table lacks;
// empty for any other name. Flags whose values keep their meaning are rows with Flag::renamed_to.
std::string_view successor_of(std::string_view older_flag);

// Returns the replacement of a value that older releases or variants of upstream accept, such as
// --variable_update=kungfu. Empty: no such value.
std::string_view successor_of_value(std::string_view flag, std::string_view value);

}  // namespace cnn::bench
