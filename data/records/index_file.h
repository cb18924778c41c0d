#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "data/records/record_index.h"

namespace cnn::data {

// Reads the lengths of the shards' records from an index file. Nothing if there is no such file, it
// is damaged, or it is for other shards: names, sizes and times must be those given.
std::optional<std::vector<Shard>> load_index(const std::filesystem::path& file,
                                             std::span<const Shard> shards);

// Writes the file, whole or not at all. Returns false if the place cannot be written.
bool save_index(const std::filesystem::path& file, std::span<const Shard> shards);

}  // namespace cnn::data
