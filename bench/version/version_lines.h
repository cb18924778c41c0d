#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cnn::bench {

// The first lines of the answer to --version: "cnn_compare 0.1.0" and the commit.
std::vector<std::string> version_lines(std::string_view program);

}  // namespace cnn::bench
