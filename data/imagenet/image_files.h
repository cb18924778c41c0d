#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cnn::data {

// A folder whose sub-folders are classes, as PyTorch's ImageFolder reads them.
struct ClassFolder {
  std::string name;
  std::int32_t label = 0;  // from 1; 0 is the background, which ImageNet's labels leave free
};
struct ImageFile {
  std::uint32_t folder = 0;  // in ImageFolder::classes
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

// dir/train for training, dir/val or dir/validation else. Throws Error if there is none, naming
// both forms of a data set that are read.
std::filesystem::path image_folder_of(const std::filesystem::path& dir, bool training);

// Lists the image files (.jpg, .jpeg, .png) of all classes. class_list: a file with the name of a
// class's folder in each line; the first line's label is 1. Empty: the folders' sorted names.
// Throws Error: no classes, more than `most_classes`, a folder that the list does not have, no
// images.
ImageFolder list_image_folder(const std::filesystem::path& root, const std::string& class_list,
                              int most_classes);

}  // namespace cnn::data
