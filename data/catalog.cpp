#include "data/catalog.h"

#include <algorithm>
#include <array>
#include <utility>

#include "data/repeat.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

// In the order in which a path is searched for their names. cifar10 has upstream's 11 classes: the
// last one never occurs.
constexpr std::array<Row, 6> rows{{
    {"imagenet", "imagenet", 1001, 1281167, 50000, nullptr},
    {"cifar10", "cifar10", 11, 50000, 10000, open_cifar10},
    {"librispeech", "librispeech", 29, 2, 2, nullptr},
    {"coco", "coco", 81, 118287, 4952, nullptr},
    {"mnist", "mnist", 10, 60000, 10000, open_mnist},
    {"tensors", "", 1001, 1281167, 50000, open_tensors},
}};

std::string names_of(bool (*wanted)(const Row&)) {
  std::string names;
  for (const Row& row : rows) {
    if (wanted(row)) {
      names += (names.empty() ? "" : ", ") + std::string(row.name);
    }
  }
  return names;
}

}  // namespace

std::span<const Row> catalog() { return rows; }

const Row& find(std::string_view name) {
  const auto* const row =
      std::find_if(rows.begin(), rows.end(), [name](const Row& r) { return r.name == name; });
  if (row == rows.end()) {
    throw Error("there is no data set '" + std::string(name) + "'; choose one of " +
                names_of([](const Row&) { return true; }));
  }
  return *row;
}

std::unique_ptr<Dataset> open(std::string_view name, const Options& options) {
  const Row& row = find(name);
  if (row.open == nullptr) {
    throw Error("this version reads no files of the data set " + std::string(name) +
                "; leave out --data_dir for synthetic input, or use --data_name=" +
                names_of([](const Row& r) { return r.open != nullptr; }));
  }
  std::unique_ptr<Dataset> dataset = row.open(options);
  return options.repeat_first ? repeat_first(std::move(dataset)) : std::move(dataset);
}

std::string_view guess_name(std::string_view data_dir) {
  if (data_dir.empty()) {
    return rows.front().name;
  }
  for (const Row& row : rows) {
    if (!row.in_path.empty() && data_dir.find(row.in_path) != std::string_view::npos) {
      return row.name;
    }
  }
  throw Error("cannot tell the data set from --data_dir=" + std::string(data_dir) +
              "; add --data_name with one of " + names_of([](const Row&) { return true; }));
}

}  // namespace cnn::data
