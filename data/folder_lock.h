#pragma once

#include <filesystem>

namespace cnn::data {

// An exclusive lock of a training folder. The operating system releases the lock when the process
// ends, even by a kill; the lock file `.lock` remains.
class FolderLock {
 public:
  // Creates the folder if it is missing. Throws Error with the process that holds the lock, or with
  // the reason why locking fails.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace cnn::data
