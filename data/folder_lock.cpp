#include "data/folder_lock.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

#include "data/checkpoint_names.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;

std::string reason() { return std::generic_category().message(errno); }

// Returns the text written by the process that holds the lock; it may not have written it yet.
std::string owner(int descriptor) {
  std::array<char, 16> digits{};
  const ssize_t got = ::pread(descriptor, digits.data(), digits.size(), 0);
  std::string text(digits.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  text.resize(std::min(text.size(), text.find_first_not_of("0123456789")));
  return text.empty() ? "another process" : "process " + text;
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) {
  std::error_code error;
  // Evaluation takes such a path. A folder of that name would hide the file from it for good.
  const fs::path file = folder.string() + std::string(checkpoint_extension);
  if (!fs::exists(folder, error) && fs::is_regular_file(file, error)) {
    throw Error("cannot train in --train_dir=" + folder.string() + ": " + file.string() +
                " is a checkpoint; to continue from the newest one, give their folder");
  }
  fs::create_directories(folder, error);
  check(fs::is_directory(folder, error), "cannot train in --train_dir=" + folder.string() +
                                             ": it is no folder and cannot be made one");
  const fs::path path = folder / ".lock";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  check(descriptor >= 0,
        "cannot train in " + folder.string() + ": cannot write " + path.string() + ": " + reason());
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    const std::string why = errno == EWOULDBLOCK ? owner(descriptor) +
                                                       " is training there; wait for it, or take "
                                                       "another folder"
                                                 : "cannot lock " + path.string() + ": " + reason();
    ::close(descriptor);
    throw Error("cannot train in " + folder.string() + ": " + why);
  }
  const std::string text = std::to_string(::getpid()) + "\n";
  // Only refused processes read it, so a full disk is not an error.
  [[maybe_unused]] const bool written =
      ::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, text.data(), text.size(), 0) > 0;
  descriptor_ = descriptor;
}

FolderLock::~FolderLock() { ::close(descriptor_); }

}  // namespace cnn::data
