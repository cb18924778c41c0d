#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cnn::bench {

// Returns the first lines of the output of --version: "cnn_compare 0.1.0" and the commit.
std::vector<std::string> version_lines(std::string_view program);

}  // namespace cnn::bench
