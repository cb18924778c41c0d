#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace cnn::bench {

// Keys stay in the order in which they were set. A nan or infinity, which JSON lacks, becomes null.
using Json = nlohmann::ordered_json;

// Writes the text to a temporary file beside `path` and renames it, so that a reader sees the old
// file or the whole new one. Throws Error, naming the path, if that fails.
void write_file_atomically(const std::string& path, const std::string& text);

}  // namespace cnn::bench
