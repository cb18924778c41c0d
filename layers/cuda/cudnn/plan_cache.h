#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "layers/cuda/cudnn/plan.h"

namespace cnn::layers::cuda {

// A cache of autotuning results: the engines chosen by timing on a device, in a text file. A line
// holds owner, cuDNN version, key of the graph, engine, knobs, workspace and seconds, separated by
// tabs. A key that begins with "node " belongs to a node of a step, whose line holds seconds and no
// engine. A later line replaces an earlier one of the same key. With equal files a device computes
// equal bits. Processes may share a file: each adds its choices to those of the others.
class PlanCache {
 public:
  // The owner of the lines that are read and written; lines of other owners stay in the file
  // unused. Each of these facts may change which engine is the fastest, or which bits it computes.
  struct Owner {
    std::string device;  // "NVIDIA H200"
    std::string driver;  // "580.65.06 for CUDA 13.0"
    std::size_t cudnn_version = 0;
    std::size_t cublaslt_version = 0;
  };
  struct Entry {
    Choice choice;
    double seconds = 0;
  };

  // Reads the file. may_create: a missing file counts as empty. Throws Error that names the file,
  // and the line if it is malformed.
  PlanCache(std::filesystem::path file, const Owner& owner, bool may_create);

  std::optional<Entry> find(const std::string& key) const;
  // Adds a choice and rewrites the file with it and the lines that the file holds by now, so that
  // nothing is lost if the run ends early. Readers see the file before or after, never between.
  // Processes that store at the same time wait for each other at a lock, FILE.lock. Throws Error if
  // the file cannot be written, or has become something else.
  void store(const std::string& key, const Entry& entry);

  std::size_t size() const { return entries_.size(); }
  std::size_t foreign() const { return foreign_; }  // lines for other owners
  const std::filesystem::path& file() const { return file_; }

 private:
  void read(const std::string& line, std::size_t number);
  std::string start_of_line(const std::string& key) const;

  std::filesystem::path file_;
  std::string owner_;  // the first field of its lines
  std::size_t cudnn_version_;
  std::map<std::string, Entry> entries_;
  std::size_t foreign_ = 0;
};

}  // namespace cnn::layers::cuda
