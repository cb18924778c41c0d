#pragma once

#include <cstddef>
#include <optional>

#include "bench/machine/disk_speed.h"
#include "runtime/disk_file.h"

namespace cnn::bench {

// The file for swapped tensors that the host has no room for, shared by all programs of a session,
// which do not run concurrently. Each rank has one of its own.
class DiskArena {
 public:
  // disk: nothing if the run has none. It must outlive the arena.
  explicit DiskArena(const std::optional<DiskSpeed>& disk) : disk_(disk) {}

  // Returns the file, with at least so many bytes of the disk reserved; null for 0 bytes. Throws
  // Error if the disk is full.
  const DiskFile* at_least(std::size_t bytes) {
    if (bytes == 0 || !disk_) {
      return nullptr;
    }
    if (!file_) {
      file_.emplace(disk_->folder, disk_->label);
    }
    if (bytes > reserved_) {
      file_->reserve(bytes);
      reserved_ = bytes;
    }
    return &*file_;
  }

 private:
  const std::optional<DiskSpeed>& disk_;
  std::optional<DiskFile> file_;
  std::size_t reserved_ = 0;
};

}  // namespace cnn::bench
