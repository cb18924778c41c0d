#include "data/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "data/file.h"
#include "data/safetensors.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view stem = "model.ckpt-";
constexpr std::string_view extension = ".safetensors";
constexpr const char* index_name = "checkpoint";

std::optional<std::int64_t> parse_step(std::string_view digits) {
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && !digits.empty() && step >= 0 ? std::optional(step) : std::nullopt;
}

// "model.ckpt-110.safetensors" gives 110; anything else, a temporary file too, nothing.
std::optional<std::int64_t> step_in_name(std::string_view name) {
  if (!name.starts_with(stem) || !name.ends_with(extension) ||
      name.size() < stem.size() + extension.size()) {
    return std::nullopt;
  }
  name.remove_prefix(stem.size());
  name.remove_suffix(extension.size());
  return parse_step(name);
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_file(at->path())) {
      paths.push_back(at->path());
    }
  }
  check(!error, "cannot list the folder " + folder.string() + ": " + error.message());
  return paths;
}

// Complete checkpoints, the highest number first.
std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  for (const fs::path& path : files_in(folder)) {
    if (const auto step = step_in_name(path.filename().string())) {
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

fs::path with_extension(const fs::path& path) {
  return path.string().ends_with(extension) ? path : fs::path(path.string().append(extension));
}

// What the file `checkpoint` says: `model_checkpoint_path: "NAME"`, or just NAME. Nothing if it is
// missing, damaged, or names a file that is gone.
std::optional<fs::path> named_in(const fs::path& folder) {
  constexpr std::uint64_t longest = 65536;
  const fs::path index = folder / index_name;
  if (!is_file(index) || InputFile(index).size() > longest) {
    return std::nullopt;
  }
  const std::vector<std::byte> bytes = read_whole(index);
  std::string_view line(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  line = line.substr(0, line.find_first_of("\r\n"));
  if (const std::size_t quote = line.find('"'); quote != std::string_view::npos) {
    line.remove_prefix(quote + 1);
    line = line.substr(0, line.find('"'));
  }
  const fs::path path = with_extension(folder / line);  // an absolute name replaces the folder
  const bool usable = step_in_name(path.filename().string()).has_value() && is_file(path);
  return usable ? std::optional(path) : std::nullopt;
}

// TensorFlow's own checkpoints cannot be read: starting afresh beside them would be a surprise.
void refuse_tensorflow(const fs::path& folder) {
  for (const fs::path& path : files_in(folder)) {
    const std::string name = path.filename().string();
    check(!name.starts_with(stem) || !name.ends_with(".index"),
          path.string() +
              " is a checkpoint of TensorFlow, which cannot be read; convert it to "
              "model.ckpt-<step>.safetensors, or name another folder");
  }
}

void remove_leftovers(const fs::path& folder) {
  for (const fs::path& path : files_in(folder)) {
    const bool temporary = path.extension() == AtomicFile::suffix;
    const std::string target = path.stem().string();
    if (temporary && (target == index_name || step_in_name(target))) {
      std::error_code ignored;  // a file in the way shows when we write
      fs::remove(path, ignored);
    }
  }
}

void remove_oldest(const fs::path& folder, const fs::path& newest, int max_to_keep) {
  if (max_to_keep <= 0) {
    return;
  }
  std::vector<fs::path> others = checkpoints_in(folder);
  std::erase(others, newest);
  for (auto i = static_cast<std::size_t>(max_to_keep - 1); i < others.size(); ++i) {
    std::error_code ignored;  // the save has succeeded; the next one tries again
    fs::remove(others[i], ignored);
  }
}

}  // namespace

std::filesystem::path save(const SaveOptions& options, std::span<const NamedTensor> tensors,
                           const ValueSource& source) {
  check(options.global_step >= 0, "a checkpoint's global step cannot be negative");
  check(options.max_to_keep >= 0, "the number of checkpoints to keep cannot be negative");
  const fs::path& folder = options.train_dir;
  std::error_code error;
  fs::create_directories(folder, error);
  check(fs::is_directory(folder, error),
        "cannot save a checkpoint: the folder " + folder.string() + " cannot be made");
  remove_leftovers(folder);

  std::vector<StoredTensor> stored{{"global_step", StoredType::i64, {}}};
  for (const NamedTensor& tensor : tensors) {
    stored.push_back({tensor.name, StoredType::f32, tensor.shape});
  }
  const std::string name =
      std::string(stem) + std::to_string(options.global_step) + std::string(extension);
  fs::path path = folder / name;
  const auto values = [&options, &source](std::size_t index) {
    return index == 0 ? std::as_bytes(std::span(&options.global_step, 1))
                      : std::as_bytes(source(index - 1));
  };
  Metadata of_several;  // a file that does not say it is of one rank
  if (options.ranks > 1) {
    of_several["ranks"] = std::to_string(options.ranks);
  }
  write_safetensors(path, stored, values, of_several);
  write_atomically(folder / index_name, "model_checkpoint_path: \"" + name + "\"\n");
  remove_oldest(folder, path, options.max_to_keep);
  return path;
}

std::optional<std::filesystem::path> find_newest(const std::filesystem::path& folder_or_path) {
  std::error_code ignored;
  if (!fs::is_directory(folder_or_path, ignored)) {
    for (const fs::path& path : {folder_or_path, with_extension(folder_or_path)}) {
      if (is_file(path)) {
        return path;
      }
    }
    return std::nullopt;
  }
  if (auto named = named_in(folder_or_path)) {
    return named;
  }
  const std::vector<fs::path> all = checkpoints_in(folder_or_path);
  if (all.empty()) {
    refuse_tensorflow(folder_or_path);
    return std::nullopt;
  }
  return all.front();
}

std::optional<std::filesystem::path> find_whole_before(const std::filesystem::path& checkpoint) {
  const std::int64_t limit = step_of(checkpoint);
  for (const fs::path& path : checkpoints_in(checkpoint.parent_path())) {
    try {
      if (step_of(path) < limit) {
        SafetensorsFile whole(path);  // its header says how many bytes there must be
        return path;
      }
    } catch (const Error&) {
      continue;  // damaged too
    }
  }
  return std::nullopt;
}

std::int64_t step_of(const std::filesystem::path& path) {
  const std::string text = path.filename().string();
  std::string_view name = text;
  if (name.ends_with(extension)) {
    name.remove_suffix(extension.size());
  }
  const std::size_t dash = name.rfind('-');
  return dash == std::string_view::npos ? 0 : parse_step(name.substr(dash + 1)).value_or(0);
}

}  // namespace cnn::data
