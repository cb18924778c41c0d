#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <vector>

#include "data/file.h"

namespace cnn::data {

// A thread-safe cache of open files: a data set may have more shards than a process may open files.
class OpenFiles {
 public:
  explicit OpenFiles(std::size_t files) : files_(files) {}
  // Returns file number `number`, opening it if necessary. Keep the pointer while reading.
  std::shared_ptr<const InputFile> get(std::size_t number, const std::filesystem::path& path) const;

 private:
  static constexpr std::size_t max_open = 128;

  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const InputFile>> files_;
  mutable std::deque<std::size_t> open_;  // oldest first
};

}  // namespace cnn::data
