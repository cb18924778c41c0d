#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace cnn::data {

// The names of the files in a --train_dir: model.ckpt-<step>.safetensors, and `checkpoint`, the
// index that names the newest of them.
inline constexpr std::string_view checkpoint_stem = "model.ckpt-";
inline constexpr std::string_view checkpoint_extension = ".safetensors";
inline constexpr const char* checkpoint_index = "checkpoint";

// Returns the number with these digits; nothing if another character occurs, or if the number has
// more than 63 bits.
std::optional<std::int64_t> parse_step(std::string_view digits);

// Returns "110" for "model.ckpt-110.safetensors": any text between the two fixed parts; nothing if
// one part is missing.
std::optional<std::string_view> step_text(std::string_view name);

// Returns 110 for "model.ckpt-110.safetensors"; nothing for any other name, such as a temporary
// file.
std::optional<std::int64_t> step_in_name(std::string_view name);

// Returns whether the path is a regular file, after following links.
bool is_file(const std::filesystem::path& path);

// Returns all entries of a folder, links and sub-folders too. Throws Error if it cannot be listed.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

// Returns the regular files of a folder with the name of a checkpoint, the highest step first.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder);

}  // namespace cnn::data
