#pragma once

#include <filesystem>
#include <string>

namespace cnn {

// Returns the target of the symbolic links of a path, also if nothing exists there yet.
std::filesystem::path end_of_links(std::filesystem::path path);

// Returns one spelling for all paths that name the same file, symbolic links followed, whether or
// not the file exists. Returns an empty text for what no write replaces: devices, pipes and open
// streams, such as /dev/stdout or /dev/fd/3.
std::string file_identity(const std::filesystem::path& path);

}  // namespace cnn
