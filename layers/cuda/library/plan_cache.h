#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "layers/cuda/library/plan.h"

namespace cnn::layers::cuda {

// Choices of engines that were timed on a device, kept in a text file: one line for each, of
// device, cuDNN version, key of the graph, engine, knobs and seconds with tabs between. A later
// line takes the place of an earlier one of the same graph. With equal files a device computes
// equal bits.
class PlanCache {
 public:
  // For whom lines are read and written. Lines for others stay in the file and are not used.
  struct Owner {
    std::string device;  // "NVIDIA H200"
    std::size_t cudnn_version = 0;
  };
  struct Entry {
    Choice choice;
    double seconds = 0;
  };

  // Reads the file. may_create: a missing file is empty. Throws Error that names the file, and the
  // line if it is none of ours.
  PlanCache(std::filesystem::path file, Owner owner, bool may_create);

  std::optional<Entry> find(const std::string& key) const;
  // Appends to the file at once, so that nothing is lost if the run ends early. Throws Error if the
  // file cannot be written.
  void store(const std::string& key, const Entry& entry);

  std::size_t size() const { return entries_.size(); }
  std::size_t foreign() const { return foreign_; }  // lines for other devices or versions
  const std::filesystem::path& file() const { return file_; }

 private:
  void read(const std::string& line, std::size_t number);

  std::filesystem::path file_;
  Owner owner_;
  std::map<std::string, Entry> entries_;
  std::size_t foreign_ = 0;
};

}  // namespace cnn::layers::cuda
