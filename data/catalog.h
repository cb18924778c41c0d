#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "data/dataset.h"

namespace cnn::data {

using OpenDataset = std::unique_ptr<Dataset> (*)(const Options&);

// All that is known of a data set without its files.
struct Row {
  std::string_view name;
  std::string_view in_path;  // a --data_dir that contains this means this data set
  int classes = 0;
  std::int64_t training_examples = 0,
               validation_examples = 0;  // of the original, for synthetic input
  bool has_networks = false;             // --model names networks for it; else those of another
  bool has_image_files = false;  // decoded and preprocessed while they are read: ImageOptions act
  bool has_distortions = false;  // --distortions changes its training images
  float scale = 1, shift = 0;    // a network sees pixel * scale + shift
  OpenDataset open = nullptr;    // nullptr: synthetic input only
  std::string_view task = "image classification";  // of the networks that train on it
};

std::span<const Row> catalog();
const Row& find(std::string_view name);  // throws, listing the names
bool can_run(const Row& row);            // with files or with synthetic input
// "a, b or c" of the rows that are wanted.
std::string names(bool (*wanted)(const Row&));

// Opens files for reading. Throws if they are missing or damaged, naming the file.
std::unique_ptr<Dataset> open(const Row& row, const Options& options);

// The data set that a --data_dir means: the first whose Row::in_path occurs in the path, `imagenet`
// without a path. Throws if none does.
const Row& guess(std::string_view data_dir);

std::unique_ptr<Dataset> open_imagenet(const Options& options);
std::unique_ptr<Dataset> open_mnist(const Options& options);
std::unique_ptr<Dataset> open_cifar10(const Options& options);
std::unique_ptr<Dataset> open_tensors(const Options& options);

}  // namespace cnn::data
