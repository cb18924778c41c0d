#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "layers/cuda/cudnn/plan.h"
#include "runtime/choice_file.h"

namespace cnn::layers::cuda {

// The plan cache (runtime/choice_file.h) with choices of engines: engine, knobs and workspace are
// the fields of a choice. A key that begins with "node " is that of a node of a step: its line
// holds seconds and no engine. With equal files a device computes equal bits.
class PlanCache {
 public:
  // The owner of the lines that are read and written; lines of other owners stay in the file
  // unused. Each member may change which engine is the fastest, or which bits it computes.
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

  // Reads the file. may_create: a missing file counts as empty. Throws Error with the file, and
  // with the line if it is malformed.
  PlanCache(std::filesystem::path file, const Owner& owner, bool may_create);

  std::optional<Entry> find(const std::string& key) const;
  void store(const std::string& key, const Entry& entry);  // see ChoiceFile::store()

  std::size_t size() const { return file_.size(); }
  std::size_t foreign() const { return file_.foreign(); }  // lines for other owners
  const std::filesystem::path& file() const { return file_.file(); }

 private:
  ChoiceFile file_;
};

}  // namespace cnn::layers::cuda
