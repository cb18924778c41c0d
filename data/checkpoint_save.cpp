#include <algorithm>
#include <cmath>
#include <span>
#include <system_error>

#include "data/checkpoint.h"
#include "data/checkpoint_names.h"
#include "data/file.h"
#include "data/safetensors.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;

// Removes temporary files of killed writers.
void remove_leftovers(const fs::path& folder) {
  for (const fs::path& path : entries_of(folder)) {
    const bool temporary = path.extension() == AtomicFile::suffix && is_file(path);
    const std::string target = path.stem().string();
    if (temporary && (target == checkpoint_index || step_in_name(target))) {
      std::error_code ignored;  // an obstructing file shows when we write
      fs::remove(path, ignored);
    }
  }
}

// Returns the names between quotes in the index, in its order: the newest checkpoint, then, as
// TensorFlow writes them, all from the oldest to the newest. Nothing if it cannot be read.
std::vector<std::string> names_in_index(const fs::path& folder) {
  std::vector<std::string> names;
  try {
    const std::vector<std::byte> bytes = read_whole(folder / checkpoint_index);
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    while (true) {
      const std::size_t begin = text.find('"');
      const std::size_t end = begin == text.npos ? text.npos : text.find('"', begin + 1);
      if (end == text.npos) {
        break;
      }
      names.emplace_back(text.substr(begin + 1, end - begin - 1));
      text.remove_prefix(end + 1);
    }
  } catch (const Error&) {
    names.clear();
  }
  return names;
}

// Returns the checkpoints of a folder from the oldest to the newest. A step says nothing of the age
// where a training went back to an earlier checkpoint, so the order is the index's. Checkpoints
// that it does not list count as older, with the lowest step as the oldest.
std::vector<fs::path> by_age(const fs::path& folder) {
  std::vector<fs::path> all = checkpoints_in(folder);
  std::ranges::reverse(all);
  std::vector<std::string> listed = names_in_index(folder);
  if (!listed.empty() && std::ranges::count(listed, listed.front()) > 1) {
    listed.erase(listed.begin());  // its place is the one in the list
  }
  std::ranges::stable_sort(all, {}, [&](const fs::path& path) {
    const auto place = std::ranges::find(listed, path.filename().string());
    return place == listed.end() ? 0 : place - listed.begin() + 1;
  });
  return all;
}

// Names the newest checkpoint, and all that stay from the oldest to the newest.
void write_index(const fs::path& folder, std::span<const fs::path> kept) {
  constexpr std::size_t most = 500;  // an index of more than 64 KiB is not read
  const auto line = [](std::string_view key, const fs::path& path) {
    return std::string(key) + ": \"" + path.filename().string() + "\"\n";
  };
  std::string text = line("model_checkpoint_path", kept.back());
  for (const fs::path& path : kept.last(std::min(most, kept.size()))) {
    text += line("all_model_checkpoint_paths", path);
  }
  write_atomically(folder / checkpoint_index, text);
}

bool are_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

// Returns whether all values of a checkpoint are finite; false if it cannot be read.
bool is_finite(const fs::path& path) {
  try {
    const SafetensorsFile file(path);
    std::vector<float> values;
    return std::ranges::all_of(file.entries(), [&](const auto& named) {
      const SafetensorsFile::Entry& entry = named.second;
      values.resize(static_cast<std::size_t>(entry.tensor.shape.elements()));
      file.read_f32(entry, values);
      return are_finite(values);
    });
  } catch (const Error&) {
    return false;
  }
}

// Writes the index and removes the oldest checkpoints beyond `most`; `all` are the folder's, from
// the oldest to the newest. Until a newer one is finite, the newest finite one stays too.
void remove_surplus(const fs::path& folder, std::span<const fs::path> all, std::size_t most,
                    bool newest_is_finite) {
  const auto surplus = all.first(all.size() - std::min(most, all.size()));
  std::vector<fs::path> kept(all.begin() + static_cast<std::ptrdiff_t>(surplus.size()), all.end());
  if (!newest_is_finite && !surplus.empty() && std::ranges::none_of(kept, is_finite)) {
    const auto finite = std::find_if(surplus.rbegin(), surplus.rend(), is_finite);
    if (finite != surplus.rend()) {
      kept.insert(kept.begin(), *finite);
    }
  }
  write_index(folder, kept);
  for (const fs::path& path : surplus) {
    if (path != kept.front()) {
      std::error_code ignored;  // the save has succeeded; the next one tries again
      fs::remove(path, ignored);
    }
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
  const std::string name = std::string(checkpoint_stem) + std::to_string(options.global_step) +
                           std::string(checkpoint_extension);
  fs::path path = folder / name;
  bool is_whole_finite = true;
  const auto values = [&](std::size_t index) {
    if (index == 0) {
      return std::as_bytes(std::span(&options.global_step, 1));
    }
    const std::span<const float> of_tensor = source(index - 1);
    is_whole_finite = is_whole_finite && are_finite(of_tensor);
    return std::as_bytes(of_tensor);
  };
  Metadata of_several;  // a file without it is from one rank
  if (options.ranks > 1) {
    of_several["ranks"] = std::to_string(options.ranks);
  }
  write_safetensors(path, stored, values, of_several);
  std::vector<fs::path> all = by_age(folder);
  std::erase(all, path);
  all.push_back(path);
  const std::size_t most =
      options.max_to_keep == 0 ? all.size() : static_cast<std::size_t>(options.max_to_keep);
  remove_surplus(folder, all, most, is_whole_finite);
  return path;
}

}  // namespace cnn::data
