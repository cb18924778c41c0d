#pragma once

#include <filesystem>

namespace cnn::data {

// A folder that one process at a time trains in. The operating system ends the lock with the
// process, however that ends; the file `.lock` that carries it stays.
class FolderLock {
 public:
  // Makes the folder if it does not exist. Throws Error that names the process which has the lock,
  // or says why none can be taken.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace cnn::data
