#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

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

// A file in memory for parsers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes)
      : descriptor_(::memfd_create("fuzz", 0)) {
    if (::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      ::abort();  // the machine is out of memory, which is no finding
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// A folder that gives files in memory the names that a data set requires.
class MemoryFolder {
 public:
  MemoryFolder() {
    std::string name = "/dev/shm/cnn_fuzz_XXXXXX";
    path_ = ::mkdtemp(name.data()) == nullptr ? "." : name;
  }
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  const std::string& path() const { return path_; }
  // Makes `name` a link to this file until remove().
  void link(const std::string& name, const MemoryFile& file) const {
    remove(name);
    std::error_code ignored;
    std::filesystem::create_symlink(file.path(), std::filesystem::path(path_) / name, ignored);
  }
  void remove(const std::string& name) const {
    std::error_code ignored;
    std::filesystem::remove(std::filesystem::path(path_) / name, ignored);
  }

 private:
  std::string path_;
};

}  // namespace cnn::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer names it
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
