#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "runtime/error.h"

namespace cnn::fuzz {

// Runs a parser, which may refuse its input only by throwing Error.
template <class Work>
void survive(const Work& work) {
  try {
    work();
  } catch (const Error&) {
  }
}

inline std::string text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A file in memory, for parsers that take a path. A target keeps one and fills it with each input.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fuzz", 0)) {}
  explicit MemoryFile(std::span<const std::uint8_t> bytes) : MemoryFile() { fill(bytes); }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void fill(std::span<const std::uint8_t> bytes) const {
    const auto size = static_cast<ssize_t>(bytes.size());
    if (::ftruncate(descriptor_, 0) != 0 ||
        ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) != size) {
      ::abort();  // the machine has no memory: that is no finding
    }
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// A folder that gives files in memory the names that a data set requires.
class MemoryFolder {
 public:
  using Link = std::pair<std::string, const MemoryFile*>;  // a name, and the file it leads to

  explicit MemoryFolder(const std::vector<Link>& links = {}) {
    std::string name = "/dev/shm/cnn_fuzz_XXXXXX";
    path_ = ::mkdtemp(name.data()) == nullptr ? "." : name;
    for (const auto& [from, file] : links) {
      std::filesystem::create_symlink(file->path(), std::filesystem::path(path_) / from);
    }
  }
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace cnn::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer names it
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
