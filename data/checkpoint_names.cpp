#include "data/checkpoint_names.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/error.h"

namespace cnn::data {

namespace fs = std::filesystem;

std::optional<std::int64_t> parse_step(std::string_view digits) {
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && !digits.starts_with('-') ? std::optional(step) : std::nullopt;
}

std::optional<std::string_view> step_text(std::string_view name) {
  if (!name.starts_with(checkpoint_stem) || !name.ends_with(checkpoint_extension) ||
      name.size() < checkpoint_stem.size() + checkpoint_extension.size()) {
    return std::nullopt;
  }
  name.remove_prefix(checkpoint_stem.size());
  name.remove_suffix(checkpoint_extension.size());
  return name;
}

std::optional<std::int64_t> step_in_name(std::string_view name) {
  const std::optional<std::string_view> digits = step_text(name);
  return digits ? parse_step(*digits) : std::nullopt;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    paths.push_back(at->path());
  }
  check(!error, "cannot list the folder " + folder.string() + ": " + error.message());
  return paths;
}

std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  for (const fs::path& path : entries_of(folder)) {
    const auto step = step_in_name(path.filename().string());
    if (step && is_file(path)) {
      found.emplace_back(*step, path);
    }
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> paths;
  paths.reserve(found.size());
  for (auto& [step, path] : found) {
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace cnn::data
