#include "data/imagenet/image_files.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <system_error>

#include "data/file.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_list = std::uint64_t{16} << 20U;

// Hidden files are no images: macOS keeps attributes of x.JPEG in ._x.JPEG.
bool is_image_name(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return !path.filename().string().starts_with('.') &&
         (ending == ".jpg" || ending == ".jpeg" || ending == ".png");
}

// Returns the sorted names of a folder's entries for which `wanted` is true.
template <class Wanted>
std::vector<std::string> names_in(const fs::path& folder, const Wanted& wanted) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (wanted(*entry)) {
      names.push_back(entry->path().filename().string());
    }
  }
  check(!failed, "cannot read the folder " + folder.string() + ": " + failed.message());
  std::ranges::sort(names);
  return names;
}

std::map<std::string, std::int32_t> read_class_list(const std::string& path) {
  check(InputFile(path).size() <= largest_list, "--class_list=" + path + " has more than 16 MiB");
  std::ifstream file(path);
  std::map<std::string, std::int32_t> labels;
  std::int32_t label = 0;
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
      line.pop_back();
    }
    if (!line.empty()) {
      check(labels.emplace(line, ++label).second,
            "--class_list=" + path + " has the class " + printable(line) + " twice");
    }
  }
  return labels;
}

std::vector<ClassFolder> list_classes(const fs::path& root, const std::string& class_list) {
  std::vector<ClassFolder> classes;
  for (const std::string& name : names_in(root, [](const fs::directory_entry& entry) {
         std::error_code ignored;
         return entry.is_directory(ignored) && !entry.path().filename().string().starts_with('.');
       })) {
    classes.push_back({.name = name, .label = static_cast<std::int32_t>(classes.size()) + 1});
  }
  if (!class_list.empty()) {
    const std::map<std::string, std::int32_t> labels = read_class_list(class_list);
    for (ClassFolder& folder : classes) {
      const auto found = labels.find(folder.name);
      check(found != labels.end(), "--class_list=" + class_list + " does not have the class " +
                                       folder.name + " of " + root.string());
      folder.label = found->second;
    }
  }
  return classes;
}

}  // namespace

fs::path image_folder_of(const fs::path& dir, bool training) {
  std::error_code ignored;
  for (const char* name : training ? std::vector{"train"} : std::vector{"val", "validation"}) {
    if (fs::is_directory(dir / name, ignored)) {
      return dir / name;
    }
  }
  const std::string subset = training ? "train" : "validation";
  throw Error("--data_dir=" + dir.string() + " has neither TFRecord files " + subset +
              "-*-of-* nor a folder " + (training ? "train" : "val") +
              " with a folder of image files for each class");
}

ImageFolder list_image_folder(const fs::path& root, const std::string& class_list,
                              int max_classes) {
  ImageFolder folder{.root = root, .classes = list_classes(root, class_list), .files = {}};
  check(!folder.classes.empty(), root.string() + " has no folders, one for each class of images");
  for (const ClassFolder& one : folder.classes) {
    check(one.label <= max_classes, root.string() + " has the class " + one.name + " of label " +
                                        std::to_string(one.label) + "; at most " +
                                        std::to_string(max_classes) + " are told apart");
  }
  for (std::uint32_t i = 0; i < folder.classes.size(); ++i) {
    for (std::string& name : names_in(root / folder.classes[i].name, [](const auto& entry) {
           return is_image_name(entry.path());
         })) {
      folder.files.push_back({.folder = i, .name = std::move(name)});
    }
  }
  check(!folder.files.empty(),
        "the folders of " + root.string() + " hold no files that end with .jpg, .jpeg or .png");
  return folder;
}

}  // namespace cnn::data
