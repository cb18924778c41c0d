#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace cnn::bench {

// Bytes of "512K" or "32M"; 0 if it is no size.
std::int64_t parse_cache_size(std::string_view text);

// Bytes that these processors have together in the caches of each level from the second on, where
// each is larger than the one before. Empty if the system does not tell. root: of its files.
std::vector<std::int64_t> cache_bytes(std::span<const int> cpus,
                                      const std::filesystem::path& root = "/");

}  // namespace cnn::bench
