#pragma once

#include <string_view>

namespace cnn::bench {

// Writes the whole text, continuing after partial writes. Returns 0, or the errno of the failure.
int write_all(int descriptor, std::string_view text);

}  // namespace cnn::bench
