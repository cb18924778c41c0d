#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "data/dataset.h"

namespace cnn::data {

using OpenDataset = std::unique_ptr<Dataset> (*)(const Options&);

// The properties of a data set that are known without its files.
struct Row {
  std::string_view name;
  std::string_view in_path;  // a --data_dir that contains this text selects this data set
  int classes = 0;
  // Sizes of the original data set, for synthetic input.
  std::int64_t training_examples = 0, validation_examples = 0;
  bool has_networks = false;     // false: --model names networks of another data set
  bool has_image_files = false;  // decodes and preprocesses files as it reads them, by ImageOptions
  bool has_distortions = false;  // --distortions changes its training images
  float scale = 1, shift = 0;    // a network sees pixel * scale + shift
  OpenDataset open = nullptr;    // nullptr: synthetic input only
  std::string_view task = "image classification";  // of the networks that train on it
};

std::span<const Row> catalog();
const Row& find(std::string_view name);  // throws Error with all names
bool can_run(const Row& row);            // with files or synthetic input
// Returns the names of the rows that `wanted` accepts, as "a, b or c".
std::string names(bool (*wanted)(const Row&));

// Opens the data set's files. Throws Error with the file's name if one is missing or damaged.
std::unique_ptr<Dataset> open(const Row& row, const Options& options);

// Returns the data set for a --data_dir: the first whose Row::in_path occurs in the path,
// `imagenet` without a path. Throws Error if none does.
const Row& guess(std::string_view data_dir);

std::unique_ptr<Dataset> open_imagenet(const Options& options);
std::unique_ptr<Dataset> open_mnist(const Options& options);
std::unique_ptr<Dataset> open_cifar10(const Options& options);
std::unique_ptr<Dataset> open_tensors(const Options& options);

}  // namespace cnn::data
