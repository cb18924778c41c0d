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
  const std::string name = std::string(checkpoint_stem) + std::to_string(options.global_step) +
                           std::string(checkpoint_extension);
  fs::path path = folder / name;
  const auto values = [&options, &source](std::size_t index) {
    return index == 0 ? std::as_bytes(std::span(&options.global_step, 1))
                      : std::as_bytes(source(index - 1));
  };
  Metadata of_several;  // a file without it is from one rank
  if (options.ranks > 1) {
    of_several["ranks"] = std::to_string(options.ranks);
  }
  write_safetensors(path, stored, values, of_several);
  write_atomically(folder / checkpoint_index, "model_checkpoint_path: \"" + name + "\"\n");
  remove_oldest(folder, path, options.max_to_keep);
  return path;
}

}  // namespace cnn::data
