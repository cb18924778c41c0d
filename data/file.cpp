#include "data/file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "runtime/error.h"
#include "runtime/resource_limits.h"

namespace cnn::data {
namespace {

// Linux transfers at most 2 GiB - 4 KiB per call.
constexpr std::size_t largest_transfer = std::size_t{1} << 30;

[[noreturn]] void fail(const std::string& what, const std::filesystem::path& path) {
  const std::string reason = write_problem_text(errno);
  throw Error(what + " " + path.string() + ": " + reason);
}

}  // namespace

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  // Non-blocking, so that a named pipe is rejected below instead of blocking here.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    fail("cannot open", path_);
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw Error("cannot read " + path_.string() + ": it is not a regular file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(descriptor_, into.data(), std::min(into.size(), largest_transfer),
                                static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      fail("cannot read", path_);
    }
    if (got == 0) {
      struct stat now {};  // the file may have been cut off since it was opened
      const std::uint64_t end = ::fstat(descriptor_, &now) == 0
                                    ? std::min(offset, static_cast<std::uint64_t>(now.st_size))
                                    : offset;
      throw Error("cannot read " + path_.string() + ": it ends after " + std::to_string(end) +
                  " bytes, where more are needed");
    }
    offset += static_cast<std::uint64_t>(got);
    into = into.subspan(static_cast<std::size_t>(got));
  }
}

void InputFile::read_ahead(std::uint64_t offset, std::uint64_t bytes) const {
  ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                  POSIX_FADV_WILLNEED);
}

std::vector<std::byte> read_whole(const std::filesystem::path& path) {
  const InputFile file(path);
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return bytes;
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(path_.string() + suffix) {
  ::unlink(temporary_.c_str());  // left by a killed writer; O_EXCL then never follows a link
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    fail("cannot create", temporary_);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    close();
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::close() noexcept {
  ::close(descriptor_);
  descriptor_ = -1;
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put =
        ::write(descriptor_, bytes.data(), std::min(bytes.size(), largest_transfer));
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put < 0) {
      fail("cannot write", temporary_);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) {
    fail("cannot write", temporary_);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail("cannot rename to", path_);
  }
  close();
  // The name is durable only after its folder is synced. Some file systems cannot sync a folder;
  // the file is then complete, but its name may be lost in a crash.
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    ::fsync(directory);
    ::close(directory);
  }
}

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 120;
  std::string result(text.substr(0, longest));
  for (char& letter : result) {
    letter = letter >= ' ' && letter <= '~' ? letter : '?';
  }
  return text.size() > longest ? result + "..." : result;
}

void write_atomically(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace cnn::data
