#pragma once

#include <string>
#include <string_view>

namespace cnn::bench {

// Adds a line, which ends with a line break, to the end of a file that other processes add lines to
// at the same time: each line stays whole. Behind a line that was cut off, as by a full disk, it
// starts a new one. Throws Error, naming flag and path; then nothing was added.
void append_line(std::string_view flag, const std::string& path, std::string_view line);

}  // namespace cnn::bench
