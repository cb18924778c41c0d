#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cnn::data {

// A folder with one sub-folder per class, as in PyTorch's ImageFolder.
struct ClassFolder {
  std::string name;
  std::int32_t label = 0;  // from 1; 0 is the background class, which ImageNet's labels do not use
};
struct ImageFile {
  std::uint32_t folder = 0;  // index into ImageFolder::classes
  std::string name;
};
struct ImageFolder {
  std::filesystem::path root;
  std::vector<ClassFolder> classes;
  std::vector<ImageFile> files;  // by class, then by name

  std::filesystem::path path(const ImageFile& file) const {
    return root / classes[file.folder].name / file.name;
  }
};

// Returns dir/train for training, otherwise dir/val or dir/validation. Throws Error if there is
// none; the message explains both supported layouts.
std::filesystem::path image_folder_of(const std::filesystem::path& dir, bool training);

// Lists the image files (.jpg, .jpeg, .png) of all classes. class_list: a file with a class
// folder's name in each line; the first line has label 1. Empty: the sorted folder names. Throws
// Error if there are no classes, more than `max_classes`, a folder missing from the list, or no
// images.
ImageFolder list_image_folder(const std::filesystem::path& root, const std::string& class_list,
                              int max_classes);

}  // namespace cnn::data
