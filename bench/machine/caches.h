#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace cnn::bench {

// Returns the bytes of "512K" or "32M"; 0 if the text is not a size.
std::int64_t parse_cache_size(std::string_view text);

// Returns the total bytes of these processors' caches at each level from the second on that is
// larger than the previous one. Empty if the system does not tell. root: of the system's files.
std::vector<std::int64_t> cache_bytes(std::span<const int> cpus,
                                      const std::filesystem::path& root = "/");

}  // namespace cnn::bench
