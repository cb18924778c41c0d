#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "data/records/record_index.h"

namespace cnn::data {

// Reads the records' lengths of the shards from an index file. Returns nothing if the file is
// missing or damaged, or if the names, sizes or times of the shards differ.
std::optional<std::vector<Shard>> load_index(const std::filesystem::path& file,
                                             std::span<const Shard> shards);

// Writes the file atomically. Returns false if the location is not writable.
bool save_index(const std::filesystem::path& file, std::span<const Shard> shards);

}  // namespace cnn::data
