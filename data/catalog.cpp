#include "data/catalog.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "data/repeat.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

// Ordered as a path is searched for their names. cifar10 has upstream's 11 classes; the last one
// never occurs.
constexpr std::array<Row, 6> rows{
    {{.name = "imagenet",
      .in_path = "imagenet",
      .classes = 1001,
      .training_examples = 1281167,
      .validation_examples = 50000,
      .has_networks = true,
      .has_image_files = true,
      .has_distortions = true,
      .open = open_imagenet},
     {.name = "cifar10",
      .in_path = "cifar10",
      .classes = 11,
      .training_examples = 50000,
      .validation_examples = 10000,
      .has_networks = true,
      .has_distortions = true,
      .scale = 1.0F / 127.5F,
      .shift = -1,
      .open = open_cifar10},
     {.name = "librispeech", .in_path = "librispeech", .classes = 29, .task = "speech recognition"},
     {.name = "coco", .in_path = "coco", .classes = 81, .task = "object detection"},
     {.name = "mnist",
      .in_path = "mnist",
      .classes = 10,
      .training_examples = 60000,
      .validation_examples = 10000,
      .has_networks = true,
      .scale = 1.0F / 255,
      .open = open_mnist},
     // --tensors_as defines their data set.
     {.name = "tensors", .in_path = ".safetensors", .open = open_tensors}}};

}  // namespace

std::span<const Row> catalog() { return rows; }

bool can_run(const Row& row) { return row.has_networks || row.open != nullptr; }

std::string names(bool (*wanted)(const Row&)) {
  std::vector<std::string_view> found;
  for (const Row& row : rows) {
    if (wanted(row)) {
      found.push_back(row.name);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < found.size(); ++i) {
    text += i == 0 ? "" : (i + 1 == found.size() ? " or " : ", ");
    text += found[i];
  }
  return text;
}

const Row& find(std::string_view name) {
  const auto* const row =
      std::find_if(rows.begin(), rows.end(), [name](const Row& r) { return r.name == name; });
  if (row == rows.end()) {
    throw Error("there is no data set '" + std::string(name) + "'; use " + names(can_run));
  }
  return *row;
}

std::unique_ptr<Dataset> open(const Row& row, const Options& options) {
  if (row.open == nullptr) {
    throw Error("this version reads no files of the data set " + std::string(row.name) +
                "; leave out --data_dir for synthetic input, or use --data_name=" +
                names([](const Row& r) { return r.open != nullptr; }));
  }
  std::unique_ptr<Dataset> dataset = row.open(options);
  // A set of image files repeats the file itself, so that its images still differ.
  const bool repeat = options.repeat_first && !row.has_image_files;
  return repeat ? repeat_first(std::move(dataset)) : std::move(dataset);
}

const Row& guess(std::string_view data_dir) {
  if (data_dir.empty()) {
    return rows.front();
  }
  for (const Row& row : rows) {
    if (data_dir.find(row.in_path) != std::string_view::npos) {
      return row;
    }
  }
  throw Error("cannot tell the data set from --data_dir=" + std::string(data_dir) +
              "; add --data_name=" + names([](const Row& r) { return r.open != nullptr; }));
}

}  // namespace cnn::data
