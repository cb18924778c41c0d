#pragma once

#include <filesystem>
#include <string>

namespace cnn {

// Returns one spelling for all paths that name the same file, symbolic links followed, whether or
// not the file exists. Returns an empty text for what no write replaces: devices, pipes and open
// streams, such as /dev/stdout or /dev/fd/3.
std::string file_identity(const std::filesystem::path& path);

}  // namespace cnn
