#include <system_error>
#include <utility>

#include "data/checkpoint.h"
#include "data/checkpoint_names.h"
#include "data/file.h"
#include "data/safetensors.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;

fs::path with_extension(const fs::path& path) {
  return path.string().ends_with(checkpoint_extension)
             ? path
             : fs::path(path.string().append(checkpoint_extension));
}

// The content of a folder's index.
struct Index {
  std::optional<fs::path> checkpoint;  // an existing file that the index names
  std::string problem;  // otherwise why the index is unusable; empty: there is no index
};

// An index that cannot be read may represent valuable training, for example on a file system that
// is not mounted. So the run ends.
[[noreturn]] void refuse_index(const fs::path& index, const std::string& problem) {
  throw Error(index.string() + " " + problem +
              ": repair it, or delete it to go on from the checkpoint with the highest step in " +
              index.parent_path().string() + ", or from step 0 if there is none");
}

// Returns false if there is no index. Throws Error if it is not a file.
bool has_index(const fs::path& index) {
  std::error_code error;
  if (fs::symlink_status(index, error).type() == fs::file_type::not_found) {
    return false;
  }
  const fs::file_status status = fs::status(index, error);
  if (status.type() == fs::file_type::regular) {
    return true;
  }
  const std::string reason = error ? error.message() : std::string("it is no regular file");
  if (fs::is_symlink(index, error)) {
    refuse_index(index, "is a link to " + fs::read_symlink(index, error).string() +
                            ", which cannot be opened (" + reason + ")");
  }
  refuse_index(index, "is no regular file");
}

// The index contains `model_checkpoint_path: "NAME"`, or just NAME.
std::string first_name(const fs::path& index) {
  const std::vector<std::byte> bytes = read_whole(index);
  std::string_view line(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  line = line.substr(0, line.find_first_of("\r\n"));
  if (const std::size_t quote = line.find('"'); quote != std::string_view::npos) {
    line.remove_prefix(quote + 1);
    line = line.substr(0, line.find('"'));
  }
  return std::string(line);
}

Index read_index(const fs::path& folder) {
  constexpr std::uint64_t longest = 65536;
  const fs::path index = folder / checkpoint_index;
  if (!has_index(index)) {
    return {};
  }
  if (InputFile(index).size() > longest) {
    return {.problem = index.string() + " is longer than 64 KiB"};
  }
  const std::string name = first_name(index);
  if (name.empty()) {
    return {.problem = index.string() + " names no checkpoint"};
  }
  const fs::path path = with_extension(folder / name);  // an absolute name replaces the folder
  const std::string file = path.filename().string();
  const std::string named = index.string() + " names " + printable(name);
  const std::optional<std::string_view> digits = step_text(file);
  if (digits && !digits->empty() && digits->find_first_not_of("0123456789") == digits->npos &&
      !parse_step(*digits)) {
    throw Error(named +
                ", whose step has more than 63 bits: write the name of a checkpoint of the folder "
                "there, or delete the file to go on from the one with the highest step");
  }
  if (!step_in_name(file)) {
    return {.problem = named + ", which is not called model.ckpt-<step>.safetensors"};
  }
  if (!is_file(path)) {
    return {.problem = named + ", which is not there"};
  }
  return {.checkpoint = path, .problem = {}};
}

// Checkpoints by TensorFlow are not readable: a fresh start beside them would surprise the user.
void refuse_tensorflow(const fs::path& folder) {
  for (const fs::path& path : entries_of(folder)) {
    const std::string name = path.filename().string();
    check(!name.starts_with(checkpoint_stem) || !name.ends_with(".index") || !is_file(path),
          path.string() +
              " is a checkpoint of TensorFlow, which cannot be read; convert it to "
              "model.ckpt-<step>.safetensors, or name another folder");
  }
}

// Throws Error for a folder with checkpoints of which none is usable, instead of starting from step
// 0.
void refuse_unusable(const fs::path& folder) {
  for (const fs::path& path : entries_of(folder)) {
    const std::string name = path.filename().string();
    const std::optional<std::string_view> digits = step_text(name);
    std::error_code ignored;
    const bool meant = digits && !digits->empty() &&
                       digits->find_first_not_of("0123456789") == digits->npos &&
                       !fs::is_directory(path, ignored);
    check(!meant, path.string() +
                      (parse_step(digits.value_or("")) ? " cannot be opened"
                                                       : " has a step of more than 63 bits") +
                      ", and there is no other checkpoint in the folder: repair or rename it, or "
                      "name another --train_dir");
  }
}

std::optional<fs::path> newest_in(const fs::path& folder, std::vector<std::string>* notices) {
  Index index = read_index(folder);
  if (index.checkpoint) {
    return index.checkpoint;
  }
  const std::vector<fs::path> all = checkpoints_in(folder);
  if (all.empty()) {
    refuse_tensorflow(folder);
    check(index.problem.empty(),
          index.problem +
              ", and there is no checkpoint in the folder: put the file back, or delete the index "
              "to start from step 0");
    refuse_unusable(folder);
    return std::nullopt;
  }
  if (!index.problem.empty() && notices != nullptr) {
    notices->push_back(index.problem + ": fell back to " + all.front().filename().string() +
                       ", the checkpoint with the highest step there");
  }
  return all.front();
}

}  // namespace

std::optional<std::filesystem::path> find_newest(const std::filesystem::path& folder_or_path,
                                                 std::vector<std::string>* notices) {
  std::error_code ignored;
  if (fs::is_directory(folder_or_path, ignored)) {
    return newest_in(folder_or_path, notices);
  }
  for (const fs::path& path : {folder_or_path, with_extension(folder_or_path)}) {
    if (is_file(path)) {
      return path;
    }
  }
  return std::nullopt;
}

std::optional<std::filesystem::path> find_whole_before(const std::filesystem::path& checkpoint) {
  const std::int64_t limit = step_of(checkpoint);
  const fs::path folder = checkpoint.has_parent_path() ? checkpoint.parent_path() : ".";
  for (const fs::path& path : checkpoints_in(folder)) {
    try {
      if (step_of(path) < limit) {
        SafetensorsFile whole(path);  // its header states the size
        return path;
      }
    } catch (const Error&) {
      continue;  // also damaged
    }
  }
  return std::nullopt;
}

std::int64_t step_of(const std::filesystem::path& path) {
  const std::string text = path.filename().string();
  std::string_view name = text;
  if (name.ends_with(checkpoint_extension)) {
    name.remove_suffix(checkpoint_extension.size());
  }
  const std::size_t dash = name.rfind('-');
  return dash == std::string_view::npos ? 0 : parse_step(name.substr(dash + 1)).value_or(0);
}

}  // namespace cnn::data
