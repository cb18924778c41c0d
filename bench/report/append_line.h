#pragma once

#include <string>
#include <string_view>

namespace cnn::bench {

// Appends a line, which ends with a line break, to a file that other processes append to
// concurrently: each line stays intact. After a truncated line, as on a full disk, it starts a new
// one. Throws Error with flag and path; then the file is unchanged.
void append_line(std::string_view flag, const std::string& path, std::string_view line);

}  // namespace cnn::bench
