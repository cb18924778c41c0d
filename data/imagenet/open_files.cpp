#include "data/imagenet/open_files.h"

#include <utility>

namespace cnn::data {

std::shared_ptr<const InputFile> OpenFiles::get(std::size_t number,
                                                const std::filesystem::path& path) const {
  {
    const std::lock_guard lock(mutex_);
    if (files_[number] != nullptr) {
      return files_[number];
    }
  }
  // Opens outside of the lock: a slow disk must not block readers of other files.
  auto opened = std::make_shared<const InputFile>(path);
  const std::lock_guard lock(mutex_);
  if (files_[number] == nullptr) {
    files_[number] = opened;
    open_.push_back(number);
  }
  if (open_.size() > max_open) {
    files_[open_.front()] = nullptr;
    open_.pop_front();
  }
  return opened;
}

}  // namespace cnn::data
